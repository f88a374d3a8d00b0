/** Keeps sessions: the service `ctx.sessionPersistence` over a medium that a store plugin brings, and the barriers. */
export { newerFormatText, PersistenceError } from './errors.ts'
export type { PersistenceErrorCode } from './errors.ts'
export type { LogWriter, Medium, MediumRow, ReadOptions, StoredLog } from './medium.ts'
