import { CallId, MessageId } from '@dsh/protocol'
import type { SessionEventMap, SessionEventType } from '@dsh/protocol'
import type { Session } from '@dsh/harness/session'
import { resultFact, userFact } from '@dsh/harness/testing'

type Append = (type: SessionEventType, data: unknown, intent?: { readonly surfaceOp: 'append' }) => void

const onSurface = { surfaceOp: 'append' } as const
const deltasInStep = 8
const stepsInTurn = 10

/** Appends turns of ten steps, each with a few deltas, one call and its result, until the log has `length` events. */
export function growTo(session: Session, length: number): void {
  for (let turn = 1; session.length < length; turn++) growTurn(session, turn)
}

function growTurn(session: Session, turn: number): void {
  const append = session.append.bind(session) as Append
  append('turn/start', { turn })
  for (let step = 1; step <= stepsInTurn; step++) {
    append('step/start', { turn, step })
    if (step === 1) append('user/message', userFact(`task ${turn}`), onSurface)
    const callId = CallId(`c${turn}-${step}`)
    const text = 'some words of an answer, as long as they are. '
    for (let delta = 0; delta < deltasInStep; delta++) {
      session.appendChunk(turn, step, { type: 'text-delta', index: 0, text })
    }
    const call = { name: 'read', arguments: `{"path":"src/file-${turn}-${step}.ts"}` }
    const content = [
      { type: 'text', text: text.repeat(deltasInStep) },
      { type: 'tool-call', id: callId, ...call },
    ] as const
    const source = { kind: 'model', provider: 'mock', model: 'mock' } as const
    const message = { id: MessageId(`m${turn}-${step}`), role: 'assistant', content, source } as const
    append(
      'assistant/message',
      { turn, step, message } satisfies SessionEventMap['assistant/message'],
      onSurface,
    )
    append('tool/call', { turn, step, callId, ...call })
    append(
      'tool/result',
      resultFact(callId, `line of a file ${turn}.${step}\n`.repeat(10), { turn, step }),
      onSurface,
    )
    append('step/end', { turn, step })
  }
  append('turn/end', { turn, reason: { kind: 'completed' } })
}
