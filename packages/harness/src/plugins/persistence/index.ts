/**
 * Keeps sessions: `mountPersistence` gives a store plugin the service `ctx.sessionPersistence` over its medium, writes
 * live sessions behind them, and holds model requests and tools back until the log is durable.
 */
export * from './notice.ts'
export { gather, toStreamGap } from './batches.ts'
export {
  assertNext,
  damagedLog,
  newerFormatText,
  notStored,
  PersistenceError,
  systemReason,
} from './errors.ts'
export type { PersistenceErrorCode } from './errors.ts'
export { heldBy, parseOwner, toHolder, unknownHolder } from './holder.ts'
export type { LogOwner } from './holder.ts'
export type { LogWriter, Medium, ReadOptions, ResumeOptions, StoredLog } from './medium.ts'
export type {
  LostEvents,
  MediumProblem,
  MediumReport,
  RawLog,
  RepairedBranch,
  RepairResult,
  StoredBatch,
  StreamGap,
  StreamOptions,
} from '../../core/session/index.ts'
export { createLocalProcesses, loadSqlite } from './local.ts'
export { mountPersistence } from './mount.ts'
export type { PersistenceOptions } from './mount.ts'
export { isProvablyDead } from './processes.ts'
export type { ProcessIdentity, Processes, ProcessState } from './processes.ts'
export { sqliteCode, sqliteCodes } from './sqlite.ts'
export { parseHeaderLine, toHeaderText } from './stored-header.ts'
export type { HeaderLine } from './stored-header.ts'
export { Persistence, viewText } from './service.ts'
export type { Timers } from './write-behind.ts'
