import type { CallId, SessionEvent } from '@dsh/protocol'
import type { FoldDefinition } from './fold.ts'

export interface TurnCursor {
  readonly openTurn: number | undefined
  readonly openStep: number | undefined
  /** 0 before the first. */
  readonly lastTurn: number
}

const cursorTypes = ['turn/start', 'turn/end', 'step/start', 'step/end'] as const

/** Where in which turn the log stands. */
export const turnCursor: FoldDefinition<TurnCursor, (typeof cursorTypes)[number]> = {
  name: 'turn cursor',
  types: cursorTypes,
  init: () => ({ openTurn: undefined, openStep: undefined, lastTurn: 0 }),
  apply(state, event) {
    switch (event.type) {
      case 'turn/start':
        return { openTurn: event.data.turn, openStep: undefined, lastTurn: event.data.turn }
      case 'turn/end':
        return { ...state, openTurn: undefined, openStep: undefined }
      case 'step/start':
        return { ...state, openStep: event.data.step }
      case 'step/end':
        return { ...state, openStep: undefined }
    }
  },
}

/** A tool call that the model made and nothing has answered yet. */
export interface PendingCall {
  readonly callId: CallId
  readonly name: string
  /** Seq of its 'tool/call'. */
  readonly callSeq?: number
  /** Seq of its 'tool/start'. */
  readonly startSeq?: number
}

const callTypes = [
  'assistant/message',
  'tool/call',
  'tool/start',
  'tool/result',
  'step/end',
  'turn/start',
  'turn/end',
] as const

/** The unanswered calls of the open step, in the order of the model's blocks. */
export const pendingCalls: FoldDefinition<readonly PendingCall[], (typeof callTypes)[number]> = {
  name: 'pending calls',
  types: callTypes,
  init: () => [],
  apply(state, event) {
    switch (event.type) {
      case 'assistant/message':
        return event.surfaceOp === 'append' ? withCallsOf(state, event) : state
      case 'tool/call':
        return mark(state, event.data.callId, 'callSeq', event.seq)
      case 'tool/start':
        return mark(state, event.data.callId, 'startSeq', event.seq)
      case 'tool/result': {
        if (event.surfaceOp !== 'append') return state
        const index = state.findIndex(call => call.callId === event.data.message.source.callId)
        return index < 0 ? state : state.toSpliced(index, 1)
      }
      default:
        return state.length === 0 ? state : []
    }
  },
}

function withCallsOf(
  state: readonly PendingCall[],
  event: SessionEvent<'assistant/message'>,
): readonly PendingCall[] {
  const calls = event.data.message.content.filter(block => block.type === 'tool-call')
  if (calls.length === 0) return state
  return [...state, ...calls.map(({ id, name }) => ({ callId: id, name }))]
}

/** Models repeat ids; the first call that is not marked yet is meant. */
function mark(
  state: readonly PendingCall[],
  callId: CallId,
  key: 'callSeq' | 'startSeq',
  seq: number,
): readonly PendingCall[] {
  const index = state.findIndex(call => call.callId === callId && call[key] === undefined)
  const call = state[index]
  return call === undefined ? state : state.with(index, { ...call, [key]: seq })
}
