import { CallId, SessionId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import { Context } from '@dsh/harness/kernel'
import { adoptChunk } from '@dsh/harness/llm'
import { SessionStore } from '@dsh/harness/session'
import type { Session } from '@dsh/harness/session'
import { resultFact, say } from '@dsh/harness/testing'
import { report } from '../figure.ts'
import { cpuOf } from '../measure.ts'

const count = 100_000

/** A live session that four plugins listen to. */
async function heardSession(): Promise<Session> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const heard = [0, 0, 0, 0]
  for (const index of heard.keys()) {
    ctx.on('session/event', (_session, event) => {
      if (event.type === 'turn/end') heard[index] = event.seq
    })
  }
  return ctx.sessions.create(SessionId('s'))
}

/** µs of one of `count` appends; what they append is made before. */
async function perAppend<T>(
  make: (index: number) => T,
  append: (session: Session, value: T) => void,
): Promise<number> {
  const cpu = await cpuOf(
    async () => {
      const session = await heardSession()
      const values = Array.from({ length: count }, (_, index) => make(index))
      return () => {
        for (const value of values) append(session, value)
      }
    },
    { warmups: 2, runs: 5 },
  )
  return cpu / count
}

report({
  name: 'append {turn, step}, 4 listeners',
  value: await perAppend(
    step => ({ turn: 1, step: step + 1 }),
    (session, data) => session.append('step/start', data),
  ),
  unit: 'µs',
  of: 'CPU',
  budget: 3,
})

report({
  name: 'append tool/call, 4 listeners',
  value: await perAppend(
    index => ({ turn: 1, step: 1, callId: CallId(`c${index}`), name: 'read', arguments: '{"path":"a.txt"}' }),
    (session, data) => session.append('tool/call', data),
  ),
  unit: 'µs',
  of: 'CPU',
  budget: 3,
})

report({
  name: 'append a message adopted before, 4 listeners',
  value: await perAppend(
    index => say(`message ${index}`),
    (session, data) => session.append('user/message', data, { surfaceOp: 'append' }),
  ),
  unit: 'µs',
  of: 'CPU',
  budget: 1.5,
})

report({
  name: 'append a fresh nested tool/result, 4 listeners',
  value: await perAppend(
    index => resultFact(`c${index}`, 'what the tool said'),
    (session, data) => session.append('tool/result', data, { surfaceOp: 'append' }),
  ),
  unit: 'µs',
  of: 'CPU',
  budget: 8,
})

report({
  name: 'append a chunk, 4 listeners',
  value: await perAppend<StreamChunk>(
    index => adoptChunk({ type: 'text-delta', index: 0, text: `w${index} ` }),
    (session, chunk) => session.appendChunk(1, 1, chunk),
  ),
  unit: 'µs',
  of: 'CPU',
  budget: 1,
})
