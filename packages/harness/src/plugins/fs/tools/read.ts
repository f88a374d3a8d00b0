import type { ImageBlock } from '@dsh/protocol'
import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { FsError } from '../errors.ts'
import { hasCode } from '../failure.ts'
import { fileMeta } from '../observed.ts'
import type { FsDirEntry, FsInfo, FsTarget } from '../service.ts'
import { presentRead } from '../present-read.ts'
import { renderRead } from '../render.ts'
import type { ReadValue } from '../render.ts'
import { missingText } from '../suggest.ts'
import { WindowReader } from '../window.ts'
import type { TextWindow } from '../window.ts'
import { resolveArgument } from './path.ts'
import { imageSchema, pictureIn } from './picture.ts'

export interface ReadConfig {
  /** Lines one call gives at most. */
  readonly readLimit: number
  /** In UTF-16 units. */
  readonly readMaxLineLength: number
  /** Of all lines of one call. */
  readonly readMaxBytes: number
  /** From this size on a file is read in pieces. */
  readonly readStreamMinSize: number
}

export const readSection = 'Read a file before you change it. Read long files in parts: offset, limit.'

const artifactName = /^artifact:([0-9a-f]{64})$/

const description = 'Read a text file as numbered lines ("12: text"), see a picture, or list a folder.'

interface Seen {
  readonly type: ReadValue['type']
  readonly info: FsInfo
  readonly window: TextWindow
  readonly image?: ImageBlock['attachment']
}

const noText: TextWindow = { lines: [], totalLines: 0, isCapped: false }

export function readTool(ctx: Context, config: ReadConfig): ToolDefinition {
  return defineTool({
    name: 'read',
    description,
    parameters: {
      file_path: { type: 'string', required: true, description: 'absolute, or in the working folder' },
      offset: { type: 'number', description: 'first line, from 1' },
      limit: { type: 'number', description: `lines, at most ${config.readLimit}` },
    },
    output: {
      schema: {
        type: { type: 'string', enum: ['file', 'directory', 'image'], required: true },
        path: { type: 'string', required: true },
        offset: { type: 'integer', required: true },
        lines: {
          type: 'array',
          required: true,
          items: {
            type: 'object',
            additionalProperties: false,
            properties: {
              number: { type: 'integer', required: true },
              text: { type: 'string', required: true },
            },
          },
        },
        totalLines: { type: 'integer', required: true },
        capped: { type: 'boolean', required: true },
        image: imageSchema,
        seen: {
          type: 'object',
          additionalProperties: false,
          properties: {
            key: { type: 'string', required: true },
            version: { type: 'string', required: true },
          },
        },
      },
      render: (_args, value) => renderRead(value),
      presentationMeta: (_args, { path, seen, offset, lines, totalLines, image }) => ({
        path,
        ...(seen && { seen }),
        ...(image && { image }),
        offset,
        lines: lines.length,
        totalLines,
        lang: /\.([^./\\]+)$/.exec(path)?.[1] ?? '',
      }),
    },
    isConcurrencySafe: () => true,
    presentCall: ({ file_path }) => ({ card: 'read', title: file_path }),
    presentResult: (_args, { meta }) => presentRead(meta),
    async execute({ file_path, offset: from, limit }, exec) {
      const offset = positive('offset', from || 1)
      const most = Math.min(positive('limit', limit ?? config.readLimit), config.readLimit)
      const wanted = { config, offset, limit: most, exec }
      const kept = await readArtifact(file_path, wanted)
      if (kept !== undefined)
        return { type: 'file' as const, path: file_path, ...facts(file_path, offset, kept) }
      const target = await resolveArgument(ctx, file_path, exec)
      const { type, info, window, image } = await see(ctx, target, wanted)
      const { path, seen } = fileMeta(target, info.version)
      const told = facts(path, image === undefined ? offset : 1, window)
      ctx.veto('fs/observed', target, { kind: 'present', version: info.version }, exec)
      return { type, path, ...told, seen, ...(image && { image }) }
    },
  })
}

/** Throws FS_OUT_OF_RANGE for a window that begins behind the text. */
function facts(path: string, offset: number, { lines, totalLines, isCapped }: TextWindow) {
  if (lines.length === 0 && offset > 1)
    throw new FsError('FS_OUT_OF_RANGE', `${path} has ${totalLines} lines, none from ${offset}`)
  return { offset, lines, totalLines, capped: isCapped }
}

function positive(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value
  throw new ToolArgsError([`${name}: must be a whole number from 1, not ${value}`])
}

interface Wanted {
  readonly config: ReadConfig
  readonly offset: number
  readonly limit: number
  readonly exec: ToolRunContext
}

/** What was too long for a result is read by the name that the result gave it. */
async function readArtifact(path: string, wanted: Wanted): Promise<TextWindow | undefined> {
  const [, sha256] = artifactName.exec(path) ?? []
  if (sha256 === undefined) return undefined
  const bytes = await wanted.exec.agent?.session.artifacts.get(sha256)
  if (bytes === undefined) throw new FsError('FS_NOT_FOUND', `no artifact ${sha256} in this session`)
  const reader = windowFor(wanted)
  reader.push(Buffer.from(bytes).toString('utf8'))
  return reader.end()
}

/** The version is taken before the content is read: what changes in between shows as changed later. */
async function see(ctx: Context, target: FsTarget, wanted: Wanted): Promise<Seen> {
  const { config, exec } = wanted
  const { signal } = exec
  await ctx.waterfall('fs/read-intent', target, exec, async () => {})
  const info = await ctx.fs.stat(target, signal)
  if (info === undefined) {
    ctx.veto('fs/observed', target, { kind: 'absent' }, exec)
    throw new FsError('FS_NOT_FOUND', await missingText(ctx.fs, target, { signal }))
  }
  if (info.type === 'other') throw new FsError('FS_NOT_REGULAR_FILE', `${target.displayPath} is not a file`)
  const reader = windowFor(wanted)
  if (info.type === 'directory') {
    for (const entry of await ctx.fs.listDir(target, signal)) reader.push(`${entryName(entry)}\n`)
    return { type: 'directory', info, window: reader.end() }
  }
  try {
    if ((info.size ?? 0) < config.readStreamMinSize) reader.push(await ctx.fs.readText(target, signal))
    else for await (const piece of await ctx.fs.streamText(target, signal)) reader.push(piece)
  } catch (error) {
    if (!hasCode(error, 'FS_NOT_TEXT')) throw error
    const image = await pictureIn(ctx, { target, info, notText: error as FsError }, exec)
    return { type: 'image', info, window: noText, image }
  }
  return { type: 'file', info, window: reader.end() }
}

function windowFor({ config, offset, limit }: Wanted): WindowReader {
  const { readMaxLineLength: maxLineLength, readMaxBytes: maxBytes } = config
  return new WindowReader({ offset, limit, maxLineLength, maxBytes })
}

/** A name may hold line ends; here it is one line. */
function entryName({ name, type }: FsDirEntry): string {
  return name.replace(/[\r\n]/g, '?') + (type === 'directory' ? '/' : '')
}
