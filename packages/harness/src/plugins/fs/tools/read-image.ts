import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'
import type { Context } from '../../../kernel/index.ts'
import { FsError } from '../errors.ts'
import { fileMeta } from '../observed.ts'
import { renderRead } from '../render.ts'
import { missingText } from '../suggest.ts'
import { resolveArgument } from './path.ts'
import { imageSchema, pictureIn } from './picture.ts'

const description = 'See a picture (png, jpeg, webp, gif); read does the same.'

/** For models that know pictures under a tool of their own. */
export function readImageTool(ctx: Context): ToolDefinition {
  return defineTool({
    name: 'read_image',
    description,
    deferred: true,
    parameters: { file_path: { type: 'string', required: true } },
    output: {
      schema: { path: { type: 'string', required: true }, image: { ...imageSchema, required: true } },
      render: (_args, { path, image }) =>
        renderRead({ type: 'image', path, lines: [], totalLines: 0, capped: false, image }),
    },
    isConcurrencySafe: () => true,
    presentCall: ({ file_path }) => ({ card: 'read', title: file_path }),
    async execute({ file_path }, exec) {
      if (file_path.trim() === '') throw new ToolArgsError(['file_path: is blank'])
      const target = await resolveArgument(ctx, file_path, exec)
      const { signal } = exec
      await ctx.waterfall('fs/read-intent', target, exec, async () => {})
      const info = await ctx.fs.stat(target, signal)
      if (info === undefined) throw new FsError('FS_NOT_FOUND', await missingText(ctx.fs, target, { signal }))
      if (info.type !== 'file')
        throw new FsError('FS_NOT_REGULAR_FILE', `${target.displayPath} is not a file`)
      const notText = new FsError('FS_NOT_TEXT', `${target.displayPath} is not a picture`)
      const image = await pictureIn(ctx, { target, info, notText }, exec)
      ctx.veto('fs/observed', target, { kind: 'present', version: info.version }, exec)
      return { path: fileMeta(target, info.version).path, image }
    },
  })
}
