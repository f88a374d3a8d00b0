import type { UserMessage } from '@dsh/protocol'

/** What an agent is doing. Only `running` shows outside; maintenance looks idle and takes no input. */
export type Phase = { readonly kind: 'idle' } | Maintenance | Running

export interface Maintenance {
  readonly kind: 'maintenance'
  readonly abort: AbortController
  /** Waking input came that this activity will not take: another one follows. */
  wakeRequested: boolean
}

export interface Running {
  readonly kind: 'running'
  /** A new one for each turn. */
  abort: AbortController
  turn: number
  /** The step that runs, or is about to. */
  step: number
  wakeRequested: boolean
  /** Waking input for the next step came since the last claim. */
  steered: boolean
  /** No further turn follows by itself. */
  stopping: boolean
  /** Taken from the inbox and not in the history yet. */
  claimed: readonly UserMessage[]
}

export const idle: Phase = { kind: 'idle' }

export function startMaintenance(): Maintenance {
  return { kind: 'maintenance', abort: new AbortController(), wakeRequested: false }
}

export function startRunning(): Running {
  return {
    kind: 'running',
    abort: new AbortController(),
    turn: 0,
    step: 0,
    wakeRequested: false,
    steered: false,
    stopping: false,
    claimed: [],
  }
}
