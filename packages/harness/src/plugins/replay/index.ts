/**
 * Sessions that run again: as a recording that needs no model, to see whether every request is still the same, and with
 * another model, to see what it does with the same inputs.
 */
export { differenceLines } from './difference-text.ts'
export { ReplayError } from './errors.ts'
export type { ReplayErrorCode } from './errors.ts'
export type { CanonicalMessage, CanonicalRequest } from './portable.ts'
export { recordSession } from './record.ts'
export type { RecordOptions } from './record.ts'
export type { RecordedRequest, RecordedResult, Recording } from './recording.ts'
export { readRecording, withRequests, writeRecording } from './recording-file.ts'
export { runRecording } from './run-recording.ts'
export type { RecordingDifference, RecordingReport, RunRecordingOptions } from './run-recording.ts'
export { planReplay } from './plan.ts'
export type { PlannedCall, PlannedTurn, ReplayPlan } from './plan.ts'
export { replaySession } from './replay-session.ts'
export type { Divergence, ReplayOptions, ReplayReport } from './replay-session.ts'
export type { RouteUsage, RunFacts, StepFacts } from './run-facts.ts'
