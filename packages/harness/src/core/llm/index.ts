/** Messages, the stream protocol, failures, and the registry through which every model request goes. */
export * from './adapter.ts'
export { BlockAssembler } from './assembler.ts'
export { callConfigEquals } from './call.ts'
export { adoptChunk, isDelta } from './chunk.ts'
export type { Delta } from './chunk.ts'
export { classifyFailure } from './classify.ts'
export type { ProviderFailure } from './classify.ts'
export * from './directory.ts'
export { LlmError, toLlmFailure } from './failure.ts'
export type { LlmFailureCode } from './failure.ts'
export { IdleWatchdog, idleWatchdog } from './idle-watchdog.ts'
export type { IdleWatchdogOptions } from './idle-watchdog.ts'
export { isLoopRequest, markLoopRequest } from './loop-request.ts'
export {
  createAssistantMessage,
  createMessage,
  createToolResultMessage,
  createUserMessage,
} from './message.ts'
export type { MessageParts, ToolResultParts } from './message.ts'
export { checkProjection } from './projection.ts'
export type { ProjectionProblem, ProjectionProblemCode } from './projection.ts'
export { defaultRetryPolicy, resolveRetryPolicy, retryDelayMs } from './retry.ts'
export type { AlwaysRetryPolicy, NormalRetryPolicy, RetryPolicy, RetryPolicySettings } from './retry.ts'
export * from './runtime.ts'
export { imagePlaceholder } from './wire-request.ts'
