import type { SessionEvent } from '@dsh/protocol'
import type { FoldDefinition } from '../session/index.ts'

/** Whether an agent did anything about what it was told. */
export interface ConsumedWork {
  /** Turns that stepped, or took input and ended other than completed. */
  readonly turns: number
  /** Pending input was cancelled and nothing came after it. */
  readonly droppedUnrun: boolean
}

interface WorkState extends ConsumedWork {
  readonly open: { readonly stepped: boolean; readonly claimed: boolean } | undefined
}

type WorkEvent = 'turn/start' | 'step/start' | 'turn/end' | 'agent/inbox/spliced'

export const consumedWork: FoldDefinition<WorkState, WorkEvent> = {
  name: 'consumed-work',
  types: ['turn/start', 'step/start', 'turn/end', 'agent/inbox/spliced'],
  init: () => ({ turns: 0, droppedUnrun: false, open: undefined }),
  apply(state: WorkState, event: SessionEvent<WorkEvent>) {
    switch (event.type) {
      case 'turn/start':
        return { ...state, open: { stepped: false, claimed: false } }
      case 'step/start':
        return state.open === undefined ? state : { ...state, open: { ...state.open, stepped: true } }
      case 'turn/end':
        return endTurn(state, event.data.reason.kind)
      case 'agent/inbox/spliced':
        return splice(state, event)
    }
  },
}

function endTurn(state: WorkState, reason: string): WorkState {
  const { open, turns } = state
  const worked = open !== undefined && (open.stepped || (open.claimed && reason !== 'completed'))
  return { ...state, turns: worked ? turns + 1 : turns, open: undefined }
}

function splice(state: WorkState, event: SessionEvent<'agent/inbox/spliced'>): WorkState {
  const { removedCount = 0, inserted, outcome } = event.data
  if (inserted.length > 0) return { ...state, droppedUnrun: false }
  if (outcome === 'canceled') return { ...state, droppedUnrun: removedCount > 0 }
  return state.open === undefined ? state : { ...state, open: { ...state.open, claimed: true } }
}
