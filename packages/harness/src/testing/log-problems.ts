import type { SessionEvent } from '@dsh/protocol'

interface Open {
  turn: number | undefined
  step: number | undefined
  lastTurn: number
  lastStep: number
  /** Calls of the step: by id, how many of its blocks and of its 'tool/call's have no result yet. */
  readonly asked: Map<string, number>
  readonly started: Map<string, number>
}

/**
 * What is wrong with how the events of a finished log hang together: turns and steps that are out of order, nested or
 * open, events outside of the step they name, tool calls without exactly one result. Empty = nothing.
 */
export function logProblems(events: Iterable<SessionEvent>): string[] {
  const open: Open = {
    turn: undefined,
    step: undefined,
    lastTurn: 0,
    lastStep: 0,
    asked: new Map(),
    started: new Map(),
  }
  const problems: string[] = []
  for (const event of events) {
    const problem = takeEvent(open, event)
    if (problem !== undefined) problems.push(`${event.seq} ${event.type}: ${problem}`)
  }
  if (open.turn !== undefined) problems.push(`turn ${open.turn} is open at the end`)
  return problems
}

function takeEvent(open: Open, event: SessionEvent): string | undefined {
  switch (event.type) {
    case 'turn/start':
      return startTurn(open, event.data.turn)
    case 'turn/end':
      return endTurn(open, event.data.turn)
    case 'step/start':
      return startStep(open, event.data)
    case 'step/end':
      return outsideStep(open, event.data) ?? endStep(open)
    case 'assistant/chunk':
      return outsideStep(open, event.data)
    case 'assistant/message':
    case 'tool/call':
    case 'tool/result':
      return takeCall(open, event)
    case 'request/header':
    case 'request/context':
      return open.turn === undefined ? 'it is outside of a turn' : undefined
    default:
      return undefined
  }
}

function startTurn(open: Open, turn: number): string | undefined {
  const problem = open.turn !== undefined ? `turn ${open.turn} is still open` : undefined
  const next = open.lastTurn + 1
  Object.assign(open, { turn, lastTurn: turn, lastStep: 0, step: undefined })
  return problem ?? (turn === next ? undefined : `turn ${turn} follows turn ${next - 1}`)
}

function endTurn(open: Open, turn: number): string | undefined {
  const { turn: last, step } = open
  open.turn = undefined
  open.step = undefined
  if (last !== turn) return `turn ${turn} ends, open is ${last}`
  return step === undefined ? undefined : `step ${step} is still open`
}

function startStep(open: Open, { turn, step }: { turn: number; step: number }): string | undefined {
  const { turn: openTurn, step: openStep, lastStep } = open
  Object.assign(open, { step, lastStep: step })
  if (openTurn !== turn) return `it names turn ${turn}, open is ${openTurn}`
  if (openStep !== undefined) return `step ${openStep} is still open`
  return step === lastStep + 1 ? undefined : `step ${step} follows step ${lastStep}`
}

function outsideStep(open: Open, { turn, step }: { turn: number; step: number }): string | undefined {
  return open.turn === turn && open.step === step
    ? undefined
    : `it names step ${turn}.${step}, open is ${open.turn}.${open.step}`
}

function endStep(open: Open): string | undefined {
  const unanswered = [...open.asked].filter(([, count]) => count > 0).map(([id]) => id)
  open.step = undefined
  open.asked.clear()
  open.started.clear()
  return unanswered.length === 0 ? undefined : `calls without a result: ${unanswered.join(', ')}`
}

function takeCall(
  open: Open,
  event: SessionEvent<'assistant/message' | 'tool/call' | 'tool/result'>,
): string | undefined {
  // A replacement stands for what was there before, wherever the log is now.
  if (event.surfaceOp !== undefined && event.surfaceOp !== 'append') return undefined
  const { asked, started } = open
  const outside = outsideStep(open, event.data)
  if (outside !== undefined) return outside
  if (event.type === 'assistant/message') {
    for (const block of event.data.message.content) if (block.type === 'tool-call') count(asked, block.id, 1)
    return undefined
  }
  if (event.type === 'tool/call') {
    count(started, event.data.callId, 1)
    return (asked.get(event.data.callId) ?? 0) > 0 ? undefined : 'no message asked for it'
  }
  const { callId } = event.data.message.source
  count(asked, callId, -1)
  if (event.data.error?.code !== 'TOOL_NOT_STARTED' && count(started, callId, -1) < 0)
    return 'the call was not started'
  return (asked.get(callId) ?? 0) >= 0 ? undefined : 'the call has a result already'
}

function count(counts: Map<string, number>, id: string, by: number): number {
  const next = (counts.get(id) ?? 0) + by
  counts.set(id, next)
  return next
}
