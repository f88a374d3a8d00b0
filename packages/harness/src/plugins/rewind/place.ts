import type { FoldDefinition, Session } from '../../core/session/index.ts'
import { RewindError } from './errors.ts'

/** Where a session is cut so that nothing from an event on is left. */
export interface Cut {
  /** The last event that stays; -1 for none. */
  readonly boundary: number
  /** The turn is open there and has to be closed. */
  readonly openTurn: boolean
  /** The files go back to how they were right after this event. */
  readonly filesAfter: number
}

interface Place {
  readonly turnStart: number | undefined
  /** The last message that entered with the turn's first request. */
  readonly prompt: number | undefined
  readonly step: number
  readonly stepEnd: number | undefined
}

const types = ['turn/start', 'turn/end', 'step/start', 'step/end', 'user/message'] as const
const outside: Place = { turnStart: undefined, prompt: undefined, step: 0, stepEnd: undefined }

const place: FoldDefinition<Place, (typeof types)[number]> = {
  name: 'place in the turn',
  types,
  init: () => outside,
  apply(state, event) {
    switch (event.type) {
      case 'turn/start':
        return { ...outside, turnStart: event.seq }
      case 'turn/end':
        return outside
      case 'step/start':
        return { ...state, step: event.data.step }
      case 'step/end':
        return { ...state, stepEnd: event.seq }
      case 'user/message':
        return state.step === 1 && state.stepEnd === undefined ? { ...state, prompt: event.seq } : state
    }
  },
}

/**
 * A prompt is taken back with its turn; a call, or anything else of a step, with its whole step, so that no call is left
 * without its result. Throws REWIND_BAD_SEQ.
 */
export function cutBefore(session: Session, seq: number): Cut {
  const event = Number.isSafeInteger(seq) ? session.at(seq) : undefined
  if (event === undefined)
    throw new RewindError('REWIND_BAD_SEQ', `session "${session.id}" has no event ${seq}`)
  const { turnStart, prompt, stepEnd } = session.fold(place, { before: seq + 1 })
  if (turnStart === undefined) {
    const boundary = event.type === 'turn/end' ? seq : seq - 1
    return { boundary, openTurn: false, filesAfter: boundary }
  }
  if (prompt === undefined || seq <= prompt)
    return { boundary: turnStart - 1, openTurn: false, filesAfter: turnStart }
  const boundary = stepEnd ?? prompt
  return { boundary, openTurn: true, filesAfter: boundary }
}
