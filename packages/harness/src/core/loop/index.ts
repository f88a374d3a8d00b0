/** Drives agents. A turn from key press to disk: agent → driver → turn → step → request, answer, scheduler. */
export * from './agent-loop.ts'
export type { AgentLoopConfig, CheckedLoopConfig, ConfiguredAgent } from './config.ts'
export { LoopError } from './errors.ts'
export type { LoopErrorCode } from './errors.ts'
export type { LoopLimits } from './host.ts'
