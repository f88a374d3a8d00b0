import { keepArtifact } from '../../../core/session/index.ts'
import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { FsError } from '../../fs/index.ts'
import { fitting, lookAtIgnored, nameArgs } from '../look.ts'
import type { Look } from '../look.ts'
import { readGlob } from '../pattern.ts'
import { findPlace } from '../place.ts'
import { globMeta, presentSearch } from '../present.ts'
import { PathReader } from '../records.ts'
import { renderGlob } from '../render.ts'
import type { GlobValue } from '../render.ts'
import type { Ripgrep } from '../ripgrep.ts'
import { PathSpread } from '../spread.ts'
import { ignoredSchema, searchTimeoutMs } from './shared.ts'

export interface GlobConfig {
  /** Files one call lists at most. */
  readonly globMaxResults: number
}

const description =
  'Find files by name, newest first. ' +
  'What .gitignore names is left out unless path leads there; hidden files are found.'

/** Of a list that is too long to be shown so many paths are kept, to be read page by page. */
const maxKeptPaths = 20_000

export function globTool(ctx: Context, config: GlobConfig, ripgrep: Ripgrep): ToolDefinition {
  return defineTool({
    name: 'glob',
    description,
    parameters: {
      pattern: { type: 'string', required: true, description: 'like src/**/*.ts' },
      path: { type: 'string', description: 'folder' },
    },
    output: {
      schema: {
        paths: { type: 'array', items: { type: 'string' }, required: true },
        total: { type: 'integer', required: true },
        folders: { type: 'integer', required: true },
        artifact: { type: 'string' },
        unreadable: { type: 'integer', required: true },
        ignored: ignoredSchema,
        missing: { type: 'string' },
      },
      render: (_args, value) => renderGlob(value),
      presentationMeta: (_args, value) => globMeta(value),
    },
    timeoutMs: searchTimeoutMs,
    isConcurrencySafe: () => true,
    presentCall: ({ pattern }) => ({ card: 'search', title: pattern }),
    presentResult: ({ pattern }, { meta }) => presentSearch(pattern, meta),
    async execute({ pattern: text, path }, exec): Promise<GlobValue> {
      if (path?.trim() === '') throw new ToolArgsError(['path: is blank'])
      const pattern = readGlob(text)
      const place = await findPlace(ctx, { path, base: pattern.base }, exec)
      if (place === undefined)
        return { paths: [], total: 0, folders: 0, unreadable: 0, missing: pattern.base }
      if (place.type === 'file') throw new FsError('FS_NOT_DIRECTORY', `${place.shown} is not a folder`)
      return await list(ripgrep, { place, pattern, signal: exec.signal }, { config, exec })
    },
  })
}

async function list(
  ripgrep: Ripgrep,
  look: Look,
  { config, exec }: { readonly config: GlobConfig; readonly exec: ToolRunContext },
): Promise<GlobValue> {
  const { place, signal } = look
  const spread = new PathSpread(config.globMaxResults)
  const kept: string[] = []
  const reader = new PathReader(printed => {
    const found = fitting(look, printed)
    if (found === undefined) return true
    spread.add(found.below, found.shown)
    if (kept.length < maxKeptPaths) kept.push(found.shown)
    return true
  })
  const { unreadable } = await ripgrep({
    args: ['--files', '--null', '--sortr=modified', ...nameArgs(look), '--', place.argument],
    cwd: place.cwd,
    signal,
    onOutput: bytes => (reader.push(bytes) ? 'go on' : 'stop'),
  })
  const { total, groups: folders } = spread
  const paths = spread.choose()
  const ignored = total === 0 ? await lookAtIgnored(ripgrep, look, ['--files']) : undefined
  const artifact = total > paths.length ? await keep(kept, exec) : undefined
  return {
    paths,
    total,
    folders,
    unreadable,
    ...(artifact !== undefined && { artifact }),
    ...(ignored !== undefined && { ignored }),
  }
}

/** The list is read by the model itself, so only its own calls keep one. */
async function keep(
  paths: readonly string[],
  { agent, parent }: ToolRunContext,
): Promise<string | undefined> {
  return parent === undefined ? await keepArtifact(agent?.session, `${paths.join('\n')}\n`) : undefined
}
