/** Append-only logs of events and what follows from them: folds, the model's view, repair, forks, and who is live. */
export * from './bus.ts'
export * from './persistence.ts'
export { adopt as snapshotJsonValue, isJsonValue } from '../../kernel/index.ts'
export { SessionArtifacts } from './artifacts.ts'
export type { ArtifactBacking, ArtifactRef, ArtifactStore } from './artifacts.ts'
export { isChunkRow, packChunks, unpackRow } from './chunk-row.ts'
export type { ChunkRow } from './chunk-row.ts'
export { SessionError, SessionForkError, SessionFormatUnsupportedError } from './errors.ts'
export type { SessionErrorCode, SessionForkErrorCode } from './errors.ts'
export { EventTypes } from './event-types.ts'
export type { EventTypeDefinition } from './event-types.ts'
export type { FoldDefinition } from './fold.ts'
export type { ForkOptions } from './fork.ts'
export { keepArtifact } from './keep-artifact.ts'
export { Session } from './log.ts'
export type { BranchOptions, EventIntent, NodeIntent, SessionFeed, SessionOptions } from './log.ts'
export { createPreparation } from './preparation.ts'
export { Publication } from './publication.ts'
export type { PublicationHooks } from './publication.ts'
export type { LostEvents, MediumProblem, MediumReport, RepairedBranch, RepairResult } from './report.ts'
export { interruptedTurnClosers, toolNotStarted, toolOutcomeUnknown } from './repair.ts'
export type { CloserOptions } from './repair.ts'
export { canonicalHeader, foldRequestHeader, headerEquals, requestContext, requestHeader } from './request.ts'
export type { FlaggedEvent } from './seed.ts'
export type { SeqRange, Sources } from './sources.ts'
export { SessionStore } from './store.ts'
export type { CreateSessionOptions, PrepareSessionOptions } from './store.ts'
export { mergeDeltas } from './stream.ts'
export {
  deriveEventMessage,
  foldSurface,
  isAppendSurfaceEvent,
  isReplacementSurfaceEvent,
  isSurfaceEvent,
  SurfaceManager,
} from './surface.ts'
export type { SessionSurface, SurfaceEvent, SurfaceFoldResult, SurfaceReplacement } from './surface.ts'
export { pendingCalls, turnCursor } from './turns.ts'
export type { PendingCall, TurnCursor } from './turns.ts'
export { tokenUsage } from './usage.ts'
export type { UsageTally } from './usage.ts'
export { SessionView } from './view.ts'
