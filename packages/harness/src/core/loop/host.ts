import type { Context } from '../../kernel/index.ts'
import type { Agent, AgentEvents, Inbox } from '../agent/index.ts'
import type { Session } from '../session/index.ts'

/** What the parts of one agent's loop share. */
export interface LoopHost {
  /** The loop plugin's own context: services are read and events dispatched through it. */
  readonly ctx: Context
  readonly agent: Agent
  readonly session: Session
  readonly inbox: Inbox
  readonly events: AgentEvents
  readonly limits: LoopLimits
}

/** Read anew by each group of tool calls. */
export interface LoopLimits {
  /** How many tool bodies of one agent may run at once; 1 = one after another. */
  readonly maxParallelToolCalls: number
}

/** Where in the session something happens, and the signal of that turn. */
export interface StepPlace {
  readonly turn: number
  readonly step: number
  readonly signal: AbortSignal
}
