/** Agents as others see them: who there is, what they are told, on whose behalf code runs. The loop drives them. */
import './accessor.ts'

export * from './agent.ts'
export { agentEvents } from './dispatch.ts'
export type { AgentEvents } from './dispatch.ts'
export { AgentError } from './errors.ts'
export type { AgentErrorCode } from './errors.ts'
export { Inbox, inboxFold } from './inbox.ts'
export type { InboxLists, InboxObserver } from './inbox.ts'
export { AgentRegistry } from './registry.ts'
export { consumedWork } from './work.ts'
export type { ConsumedWork } from './work.ts'
