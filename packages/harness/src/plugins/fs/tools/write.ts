import { defineTool } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { boundedDiff, diffText } from '../diff-text.ts'
import { fileMeta } from '../observed.ts'
import { announcer } from './announce.ts'
import { changeMeta, changeSchema, lostIn, lostText, presentChange, withRemedy } from './change.ts'
import type { Change } from './change.ts'
import { assertWellFormed, resolveArgument } from './path.ts'

export const writeSection = 'Use write for new files and whole rewrites, edit for changes.'

const description = 'Create or replace a whole file; missing folders are made.'

export function writeTool(ctx: Context): ToolDefinition {
  return defineTool({
    name: 'write',
    description,
    parameters: {
      file_path: { type: 'string', required: true },
      content: { type: 'string', required: true },
    },
    output: {
      schema: changeSchema,
      render: (_args, value) => renderWrite(value),
      presentationMeta: (_args, value) => changeMeta(value),
    },
    effects: ({ file_path: path }) => [{ kind: 'write', path }],
    presentCall: ({ file_path, content }) => ({
      card: 'diff',
      title: file_path,
      data: { path: file_path, content },
    }),
    presentResult: (_args, result) => presentChange(result),
    async execute({ file_path, content }, exec) {
      assertWellFormed('content', content)
      const target = await resolveArgument(ctx, file_path, exec)
      try {
        const intent = await ctx.waterfall('fs/write-intent', target, exec, async () => undefined)
        const announce = announcer(ctx, target, exec)
        const done = await ctx.fs.writeText(target, content, intent, exec.signal, announce)
        const { path, seen } = fileMeta(target, done.version)
        ctx.veto('fs/observed', target, { kind: 'present', version: done.version }, exec)
        const diff = boundedDiff(done.before, done.after)
        return {
          path,
          operation: done.operation,
          ...seen,
          ...done.hashes,
          ...lostIn(done),
          ...(diff && { diff }),
        }
      } catch (error) {
        throw withRemedy(error)
      }
    },
  })
}

function renderWrite(value: Change): string {
  const { path, operation, before, after, diff } = value
  const lost = lostText(value)
  if (operation === 'create') return `Created file ${path}`
  if (before === after) return `Updated file ${path}: nothing is different${lost}`
  if (diff === undefined) return `Updated file ${path}${lost}`
  return `Updated file ${path} (+${diff.added} -${diff.removed})\n${diffText(diff)}${lost}`
}
