import type { SessionEvent } from '@dsh/protocol'
import type { LogCheck } from './log-check.ts'

/** Where a log stands: which turn and step are open, and how many calls of each id wait for a result. */
export interface Enclosure {
  readonly openTurn: number | undefined
  readonly openStep: number | undefined
  readonly lastTurn: number
  /** Within the open turn. */
  readonly lastStep: number
  readonly calls: ReadonlyMap<string, number>
}

const noCalls: ReadonlyMap<string, number> = new Map()

const start: Enclosure = {
  openTurn: undefined,
  openStep: undefined,
  lastTurn: 0,
  lastStep: 0,
  calls: noCalls,
}

/**
 * Turns are 1, 2, 3… and not nested, steps are 1, 2, 3… inside them; what belongs to a step names the open one, a
 * result follows its call, and facts of a turn stand inside one. Anything else may stand anywhere.
 */
export const enclosure: LogCheck<Enclosure> = { name: 'enclosure', start, problem, after }

function problem(state: Enclosure, event: SessionEvent): string | undefined {
  switch (event.type) {
    case 'turn/start':
      return startOfTurn(state, event.data.turn)
    case 'turn/end':
      if (state.openStep !== undefined) return `turn ${event.data.turn} ends inside step ${state.openStep}`
      return ofTurn(state, event.data.turn)
    case 'step/start':
      return startOfStep(state, event.data)
    case 'step/end':
      return ofStep(state, event.data)
    default:
      return ofContent(state, event)
  }
}

function ofContent(state: Enclosure, event: SessionEvent): string | undefined {
  switch (event.type) {
    case 'assistant/chunk':
    case 'tool/call':
      return ofStep(state, event.data)
    case 'assistant/message':
      return event.surfaceOp === 'append' ? ofStep(state, event.data) : inTurn(state)
    case 'tool/start':
      return ofStep(state, event.data) ?? ofCall(state, event.data.callId)
    case 'tool/result':
      return ofResult(state, event)
    case 'todo/write':
    case 'request/header':
    case 'request/context':
      return inTurn(state)
    default:
      return undefined
  }
}

function after(state: Enclosure, event: SessionEvent): Enclosure {
  switch (event.type) {
    case 'turn/start': {
      const { turn } = event.data
      return { openTurn: turn, openStep: undefined, lastTurn: turn, lastStep: 0, calls: noCalls }
    }
    case 'turn/end':
      return { ...state, openTurn: undefined, openStep: undefined, calls: noCalls }
    case 'step/start':
      return { ...state, openStep: event.data.step, lastStep: event.data.step, calls: noCalls }
    case 'step/end':
      return { ...state, openStep: undefined, calls: noCalls }
    case 'tool/call':
      return { ...state, calls: counted(state.calls, event.data.callId, 1) }
    case 'tool/result':
      return event.surfaceOp === 'append'
        ? { ...state, calls: counted(state.calls, event.data.message.source.callId, -1) }
        : state
    default:
      return state
  }
}

function startOfTurn({ openTurn, lastTurn }: Enclosure, turn: number): string | undefined {
  if (openTurn !== undefined) return `turn ${turn} starts inside turn ${openTurn}`
  return turn === lastTurn + 1 ? undefined : `turn ${turn} follows turn ${lastTurn}`
}

function startOfStep(state: Enclosure, { turn, step }: Place): string | undefined {
  if (state.openStep !== undefined) return `step ${turn}.${step} starts inside step ${state.openStep}`
  if (step !== state.lastStep + 1) return `step ${turn}.${step} follows step ${state.lastStep}`
  return ofTurn(state, turn)
}

interface Place {
  readonly turn: number
  readonly step: number
}

function inTurn({ openTurn }: Enclosure): string | undefined {
  return openTurn === undefined ? 'it stands outside of a turn' : undefined
}

function ofTurn(state: Enclosure, turn: number): string | undefined {
  return (
    inTurn(state) ??
    (turn === state.openTurn ? undefined : `it names turn ${turn} inside turn ${state.openTurn}`)
  )
}

function ofStep(state: Enclosure, { turn, step }: Place): string | undefined {
  const wrong = ofTurn(state, turn)
  if (wrong !== undefined) return wrong
  if (state.openStep === undefined) return 'it stands outside of a step'
  return step === state.openStep ? undefined : `it names step ${step} inside step ${state.openStep}`
}

function ofCall({ calls }: Enclosure, callId: string): string | undefined {
  return (calls.get(callId) ?? 0) > 0 ? undefined : `no call "${callId}" waits in this step`
}

/** A result that was shortened later needs no more than an open turn. */
function ofResult(state: Enclosure, event: SessionEvent<'tool/result'>): string | undefined {
  if (event.surfaceOp !== 'append') return inTurn(state)
  const wrong = ofStep(state, event.data)
  if (wrong !== undefined || event.data.error?.code === 'TOOL_NOT_STARTED') return wrong
  return ofCall(state, event.data.message.source.callId)
}

function counted(
  calls: ReadonlyMap<string, number>,
  callId: string,
  change: 1 | -1,
): ReadonlyMap<string, number> {
  const count = (calls.get(callId) ?? 0) + change
  const next = new Map(calls)
  if (count > 0) next.set(callId, count)
  else next.delete(callId)
  return next
}
