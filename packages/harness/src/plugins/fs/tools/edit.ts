import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { boundedDiff, diffText } from '../diff-text.ts'
import { freshLines } from '../edit-report.ts'
import { FsError } from '../errors.ts'
import { hasCode } from '../failure.ts'
import { fileMeta } from '../observed.ts'
import type { FsEditMatch, FsEditRequest, FsTarget } from '../service.ts'
import { announcer } from './announce.ts'
import { changeMeta, changeSchema, lostIn, lostText, presentChange, withRemedy } from './change.ts'
import type { Change } from './change.ts'
import { assertWellFormed, resolveArgument } from './path.ts'

export const editSection = 'For edit copy old_string from the file, without the line numbers that read shows.'

const description = 'Replace text in a file that was read. old_string must be unique there.'

const maxFreshBytes = 1024 * 1024

const matchTexts: Record<Exclude<FsEditMatch, 'exact'>, string> = {
  'trailing-space': 'blanks at line ends',
  punctuation: 'other quotes, dashes, blanks or signs',
  indentation: 'another indentation',
}

export function editTool(ctx: Context): ToolDefinition {
  return defineTool({
    name: 'edit',
    description,
    parameters: {
      file_path: { type: 'string', required: true },
      old_string: { type: 'string', required: true },
      new_string: { type: 'string', required: true },
      replace_all: { type: 'boolean', description: 'every occurrence' },
      edits: {
        type: 'array',
        description: 'more, made in order after this one; all or none',
        items: {
          type: 'object',
          additionalProperties: false,
          properties: {
            old_string: { type: 'string', required: true },
            new_string: { type: 'string', required: true },
            replace_all: { type: 'boolean' },
          },
        },
      },
    },
    output: {
      schema: {
        ...changeSchema,
        replacements: { type: 'integer', required: true },
        match: {
          type: 'string',
          enum: ['exact', 'trailing-space', 'punctuation', 'indentation'],
          required: true,
        },
      },
      render: (_args, value) => renderEdit(value),
      presentationMeta: (_args, value) => changeMeta(value),
    },
    effects: ({ file_path: path }) => [{ kind: 'write', path }],
    presentCall: ({ file_path, old_string, new_string, edits }) => ({
      card: 'diff',
      title: file_path,
      data: {
        path: file_path,
        oldText: old_string,
        newText: new_string,
        ...(edits && { edits: edits.map(edit => ({ oldText: edit.old_string, newText: edit.new_string })) }),
      },
    }),
    presentResult: (_args, result) => presentChange(result),
    async execute({ file_path, edits = [], ...first }, exec) {
      const requests = [
        toRequest(first, ''),
        ...edits.map((edit, index) => toRequest(edit, `edits[${index}].`)),
      ]
      const target = await resolveArgument(ctx, file_path, exec)
      return await change(ctx, target, requests, exec)
    },
  })
}

interface EditArguments {
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean
}

function toRequest(edit: EditArguments, place: string): FsEditRequest {
  const { old_string: oldString, new_string: newString, replace_all: replaceAll = false } = edit
  assertWellFormed(`${place}old_string`, oldString)
  assertWellFormed(`${place}new_string`, newString)
  if (oldString === '') throw new ToolArgsError([`${place}old_string: is empty`])
  if (oldString === newString) throw new ToolArgsError([`${place}new_string: is the same as old_string`])
  return { oldString, newString, replaceAll }
}

async function change(
  ctx: Context,
  target: FsTarget,
  requests: readonly FsEditRequest[],
  exec: ToolRunContext,
) {
  try {
    const intent = await ctx.waterfall('fs/edit-intent', target, exec, async () => undefined)
    const announce = announcer(ctx, target, exec)
    const done = await ctx.fs.editText(target, requests, intent, exec.signal, announce)
    const { path, seen } = fileMeta(target, done.version)
    ctx.veto('fs/observed', target, { kind: 'present', version: done.version }, exec)
    const diff = boundedDiff(done.before, done.after)
    const { match, replacements } = done
    const operation = 'update' as const
    return {
      path,
      operation,
      ...seen,
      ...done.hashes,
      ...lostIn(done),
      ...(diff && { diff }),
      match,
      replacements,
    }
  } catch (error) {
    if (!hasCode(error, 'FS_STALE_VERSION')) throw withRemedy(error)
    throw (await seenAgain(ctx, target, requests, { exec, error })) ?? withRemedy(error)
  }
}

/**
 * A changed file is shown where the edit was meant, so that the model can make it anew without reading the file again:
 * it has then seen this version.
 */
async function seenAgain(
  ctx: Context,
  target: FsTarget,
  requests: readonly FsEditRequest[],
  { exec, error }: { readonly exec: ToolRunContext; readonly error: unknown },
): Promise<FsError | undefined> {
  try {
    const info = await ctx.fs.stat(target, exec.signal)
    if (info?.type !== 'file' || (info.size ?? 0) > maxFreshBytes) return undefined
    const fresh = freshLines(await ctx.fs.readText(target, exec.signal), requests)
    ctx.veto('fs/observed', target, { kind: 'present', version: info.version }, exec)
    const message = `${(error as Error).message}; it now reads\n${fresh}\nretry the edit against this text`
    return new FsError('FS_STALE_VERSION', message, { cause: error })
  } catch {
    return undefined
  }
}

type Edited = Change & { readonly replacements: number; readonly match: FsEditMatch }

function renderEdit(value: Edited): string {
  const { path, replacements, match, diff } = value
  const places = replacements === 1 ? '' : ` in ${replacements} places`
  const how = match === 'exact' ? '' : `; matched in spite of ${matchTexts[match]}`
  const counts = diff === undefined ? '' : ` (+${diff.added} -${diff.removed})\n${diffText(diff)}`
  return `Edited ${path}${places}${how}${counts}${lostText(value)}`
}
