import { _default, boolean, int, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { declareChanges } from './tools/announce.ts'
import { editSection, editTool } from './tools/edit.ts'
import { readSection, readTool } from './tools/read.ts'
import type { ReadConfig } from './tools/read.ts'
import { readImageTool } from './tools/read-image.ts'
import { writeSection, writeTool } from './tools/write.ts'

export interface FsToolsConfig extends ReadConfig {
  /** Adds read_image, which models find when they look for it. Default false. */
  readonly readImage: boolean
}

const count = (fallback: number) => _default(int().check(positive()), fallback)

export const fsToolsFields = () => ({
  readLimit: count(2000),
  readMaxLineLength: count(2000),
  readMaxBytes: count(51_200),
  readStreamMinSize: count(10 * 2 ** 20),
  readImage: _default(boolean(), false),
})

const schema = () => prefault(strictObject(fsToolsFields()), {})

/** The tools read, write and edit over whatever provides `ctx.fs`. */
export const fsTools: PluginObject<input<ReturnType<typeof schema>>, FsToolsConfig> = {
  name: 'fs-tools',
  inject: { required: ['fs', 'tools'], optional: ['attachments', 'sessions', 'systemPrompt'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: FsToolsConfig) {
    declareChanges(ctx)
    ctx.tools.register(readTool(ctx, config))
    ctx.tools.register(writeTool(ctx))
    if (config.readImage) ctx.tools.register(readImageTool(ctx))
    ctx.tools.register(editTool(ctx))
    const prompt = ctx.get('systemPrompt')
    prompt?.section({ name: 'tool:read', order: 100, text: readSection })
    prompt?.section({ name: 'tool:write', order: 101, text: writeSection })
    prompt?.section({ name: 'tool:edit', order: 102, text: editSection })
  },
}
