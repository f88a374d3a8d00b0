/** The files of the execution world: `ctx.fs`, read-before-write, and the tools read, write and edit. */
export * from './errors.ts'
export * from './service.ts'
export { LocalFs, localFs } from './local.ts'
export type { LocalFsConfig } from './local.ts'
