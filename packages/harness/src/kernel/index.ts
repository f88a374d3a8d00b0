/** Plugins, services, reversible effects and events; knows nothing of agents. See docs/decisions/kernel.md. */
export * from './context.ts'
export * from './errors.ts'
export * from './events.ts'
export * from './fields.ts'
export { toJsonText } from './json-text.ts'
export * from './json.ts'
export * from './service.ts'
export { kernelCopies } from './copies.ts'
export { isGone } from './env.ts'
export { underFileLock } from './file-lock.ts'
export { isWithin } from './is-within.ts'
export { KeyedLocks } from './keyed-locks.ts'
export { literal } from './literal.ts'
export { editDistance, nearest } from './nearest.ts'
export { makeFolders } from './make-folders.ts'
export { replaceFile, syncFolder } from './replace-file.ts'
export { endsWithin, MAX_TIMER_DELAY_MS } from './time-limit.ts'
export { unlessAborted } from './unless-aborted.ts'
export { Fiber } from './fiber.ts'
export type { FiberReport, FiberState } from './fiber.ts'
export type { AsyncDisposer, Disposer } from './effect.ts'
export type {
  ConfigSchema,
  Inject,
  Plugin,
  PluginClass,
  PluginFunction,
  PluginObject,
  SchemaResult,
  SetupResult,
} from './plugin.ts'
export type { SchemaIssue } from './schema-issue.ts'
