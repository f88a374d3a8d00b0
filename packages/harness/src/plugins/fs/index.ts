import { prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { localFs, localFsFields } from './local.ts'
import type { LocalFsConfig } from './local.ts'
import { fsPolicy } from './policy.ts'
import { fsTools, fsToolsFields } from './tools.ts'
import type { FsToolsConfig } from './tools.ts'

export * from './errors.ts'
export * from './service.ts'
export { LocalFs, localFs } from './local.ts'
export type { LocalFsConfig } from './local.ts'
export { changedFiles } from './observed.ts'
export type { ChangedFile, FileChangeMeta, FileMeta } from './observed.ts'
export { fsPolicy } from './policy.ts'
export { missingText } from './suggest.ts'
export { fsTools } from './tools.ts'
export { announcer } from './tools/announce.ts'
export type { FsToolsConfig } from './tools.ts'

export type FsConfig = LocalFsConfig & FsToolsConfig

const schema = () => prefault(strictObject({ ...localFsFields(), ...fsToolsFields() }), {})

/**
 * The files of the execution world: `ctx.fs` on this machine, read-before-write, and the tools read, write and edit.
 * Each part is a plugin of its own, for those who replace or leave out one.
 */
export const fs: PluginObject<input<ReturnType<typeof schema>>, FsConfig> = {
  name: 'fs',
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: FsConfig) {
    const { cwd, diffBasisMaxBytes, ...limits } = config
    const local = ctx.plugin(localFs, { cwd, diffBasisMaxBytes })
    if (local.state === 'failed') throw local.error
    ctx.plugin(fsPolicy)
    ctx.plugin(fsTools, limits, { wait: true })
  },
}
