import { SessionId } from '@dsh/protocol'
import type { SessionHeader } from '@dsh/protocol'
import { append } from '../../src/testing/contracts/store-program.ts'
import type { StoreProgram } from '../../src/testing/contracts/store-program.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import { answerFact, callFact, headerFact, userFact } from '../../src/testing/index.ts'
import type { Draft } from '../../src/testing/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import type { Scenario } from './enumerate.ts'

const meta: Partial<SessionHeader> = { createdAt: 1_700_000_000_000, cwd: '/srv/project' }

function create({ ctx }: StoreProgram, id = 's1'): Session {
  return ctx.sessions.create(SessionId(id), { meta })
}

/** Stores events; resolves once they are durable. */
async function store({ ctx }: StoreProgram, session: Session, ...drafts: readonly Draft[]): Promise<void> {
  append(session, ...drafts)
  await ctx.sessions.flush(session)
}

async function resume({ ctx }: StoreProgram, id = 's1'): Promise<Session> {
  const { session } = await ctx.sessionPersistence.prepare(SessionId(id))
  ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  return session
}

/** A turn that was cut off in the middle of two calls. */
const openTurn: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('go')],
  ['request/header', headerFact()],
  ['assistant/message', answerFact('', ['c1', 'c2'])],
  ['tool/call', callFact('c1')],
]

const materialise: Scenario = {
  name: 'the first write',
  async run(machine) {
    const program = await machine.start()
    await store(program, create(program), ...turnOf('hello'))
    await program.stop()
  },
}

const batches: Scenario = {
  name: 'batch after batch',
  async run(machine, random) {
    const program = await machine.start()
    const session = create(program)
    for (let turn = 1; turn <= 10; turn += 1) {
      append(session, ...turnOf(`${turn} ${'x'.repeat(random.below(turn % 4 === 0 ? 60_000 : 2000))}`, turn))
      // Some are written behind, some at a barrier.
      if (turn % 3 === 0) program.clock.expire()
      else await program.ctx.sessions.flush(session)
    }
    await program.stop()
  },
}

export const jsonlScenarios: readonly Scenario[] = [materialise, batches]
export { create, openTurn, resume, store }
