/** `ctx.subprocess`: programs and the trees of processes they grow into, ended with the plugin. */
export { OutputCapture } from './capture.ts'
export * from './errors.ts'
export * from './service.ts'
export { LocalSubprocess, subprocess } from './local.ts'
export type { SubprocessConfig } from './local.ts'
