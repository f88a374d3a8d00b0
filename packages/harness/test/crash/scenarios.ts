import { dirname } from 'node:path'
import { MessageId, SessionId } from '@dsh/protocol'
import type { SessionHeader } from '@dsh/protocol'
import { append } from '../../src/testing/contracts/store-program.ts'
import type { StoreProgram } from '../../src/testing/contracts/store-program.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import { answerFact, callFact, headerFact, userFact } from '../../src/testing/index.ts'
import type { Draft } from '../../src/testing/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import { repackLog } from '../../src/plugins/store-jsonl/repack.ts'
import type { Scenario } from './enumerate.ts'
import { root } from './machine.ts'

const meta: Partial<SessionHeader> = { createdAt: 1_700_000_000_000, cwd: '/srv/project' }

export function create({ ctx }: StoreProgram, id = 's1'): Session {
  return ctx.sessions.create(SessionId(id), { meta })
}

/** Stores events; resolves once they are durable. */
export async function store(
  { ctx }: StoreProgram,
  session: Session,
  ...drafts: readonly Draft[]
): Promise<void> {
  append(session, ...drafts)
  await ctx.sessions.flush(session)
}

export async function resume({ ctx }: StoreProgram, id = 's1'): Promise<Session> {
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

const continued: Scenario = {
  name: 'resume of a turn that was cut off',
  async run(machine) {
    const first = await machine.start()
    await store(first, create(first), ...turnOf('before', 1).slice(0, 2), ...openTurn.slice(2))
    machine.kill()
    machine.beginTrace()
    const next = await machine.start()
    await store(next, await resume(next), ...turnOf('after', 2))
    await next.stop()
  },
}

function mend(name: string, tear: (log: Buffer, whole: number) => Buffer): Scenario {
  return {
    name: `mending a tail that ${name}`,
    async run(machine) {
      const first = await machine.start()
      const session = create(first)
      await store(first, session, ...turnOf('whole'))
      const whole = machine.log().length
      await store(first, session, ...turnOf('torn', 2).slice(0, 4))
      machine.tearLog(6, log => tear(log, whole))
      const next = await machine.start()
      const again = await resume(next)
      await store(next, again, ...turnOf('after', (again.last('turn/start')?.data.turn ?? 0) + 1))
      await next.stop()
    },
  }
}

const artifacts: Scenario = {
  name: 'artifacts and long texts',
  async run(machine) {
    const program = await machine.start()
    const session = create(program)
    await session.artifacts.put(Buffer.from('a picture'), 'image/png')
    await store(program, session, ...turnOf('x'.repeat(70_000)))
    await session.artifacts.put(Buffer.from('another picture'), 'image/png')
    await store(program, session, ...turnOf('y'.repeat(70_000), 2))
    machine.kill()
    const next = await machine.start()
    const again = await resume(next)
    // The same once more: nobody may take it for durable because it can be seen.
    await store(next, again, ...renamed(turnOf('x'.repeat(70_000), 3)))
    await again.artifacts.put(Buffer.from('another picture'), 'image/png')
    await next.stop()
  },
}

/** The same drafts with message ids that no earlier turn has. */
function renamed(drafts: readonly Draft[]): readonly Draft[] {
  return drafts.map(draft => {
    const [type, data] = draft
    return type === 'user/message' ? [type, { ...data, id: MessageId('again') }] : draft
  })
}

const fork: Scenario = {
  name: 'a fork with inherited pictures',
  async run(machine) {
    const program = await machine.start()
    const parent = create(program)
    const { sha256, bytes } = await parent.artifacts.put(Buffer.from('a picture'), 'image/png')
    const image = { type: 'image', attachment: { sha256, mediaType: 'image/png', bytes } } as const
    const [start, step, , ...rest] = turnOf('look')
    const shown: Draft = ['user/message', { ...userFact('look'), content: [image] }]
    await store(program, parent, ...([start, step, shown, ...rest] as readonly Draft[]))
    machine.beginTrace()
    const child = program.ctx.sessions.fork(parent, undefined, SessionId('child'))
    await store(program, child, ...turnOf('in the child', 2))
    await store(program, parent, ...turnOf('in the parent', 2))
    const late = program.ctx.sessions.fork(child, 3, SessionId('late'), { openTurn: 'close' })
    await store(program, late, ...turnOf('late', 3))
    await program.stop()
  },
}

const takeOver: Scenario = {
  name: 'a lock that changes hands',
  async run(machine) {
    for (let life = 1; life <= 4; life += 1) {
      const program = await machine.start()
      const session = life === 1 ? create(program) : await resume(program)
      await store(program, session, ...turnOf(`life ${life}`, life).slice(0, life % 2 === 0 ? 3 : 6))
      if (life === 3) await program.stop()
      else machine.kill()
    }
  },
}

const sweep: Scenario = {
  name: 'sweeping what dead programs left',
  async run(machine) {
    const dead = await machine.start()
    const begun = create(dead, 'begun')
    await begun.artifacts.put(Buffer.from('of no session'), 'image/png')
    await store(dead, create(dead, 'whole'), ...turnOf('whole'))
    const draft = await machine.fs.open(`${root}/--srv-project--/whole/log.jsonl.zst.draft.tmp`, 'create')
    await draft.write(Buffer.from('half a log'))
    machine.kill()
    machine.beginTrace()
    const program = await machine.start()
    const medium = machine.open()
    await Promise.all([medium.sweep?.(), store(program, create(program), ...turnOf('new'))])
    await store(program, create(program, 'begun'), ...turnOf('begun at last'))
    await program.stop()
    await medium.sweep?.()
  },
}

const reload: Scenario = {
  name: 'a store that is reloaded in a turn',
  async run(machine) {
    const program = await machine.start()
    const session = create(program)
    const drafts = turnOf('hello')
    await store(program, session, ...drafts.slice(0, 2))
    append(session, ...drafts.slice(2, 3))
    await program.unmount()
    append(session, ...drafts.slice(3, 4))
    await program.mount()
    await store(program, session, ...drafts.slice(4))
    await program.stop()
  },
}

const several: Scenario = {
  name: 'three sessions at once',
  async run(machine) {
    const program = await machine.start()
    const sessions = ['a', 'b', 'c'].map(id => create(program, id))
    for (let turn = 1; turn <= 3; turn += 1)
      await Promise.all(
        sessions.map(session => store(program, session, ...turnOf(`${session.id} ${turn}`, turn))),
      )
    await program.stop()
  },
}

const repack: Scenario = {
  name: 'packing a cold log',
  async run(machine) {
    const program = await machine.start()
    const session = create(program)
    for (let turn = 1; turn <= 12; turn += 1) await store(program, session, ...turnOf(`turn ${turn}`, turn))
    await program.stop()
    machine.beginTrace()
    await repackLog(machine.newProcess(), dirname(machine.logPath()))
    const next = await machine.start()
    await store(next, await resume(next), ...turnOf('packed', 13))
    await next.stop()
  },
}

const remove: Scenario = {
  name: 'removing a session',
  async run(machine) {
    const first = await machine.start()
    for (const id of ['s1', 'kept']) {
      const session = create(first, id)
      await session.artifacts.put(Buffer.from(`picture of ${id}`), 'image/png')
      await store(first, session, ...turnOf('x'.repeat(70_000)))
    }
    await first.stop()
    machine.beginTrace()
    const next = await machine.start()
    await next.ctx.sessionPersistence.remove(SessionId('s1'))
    await store(next, create(next), ...turnOf('anew'))
    await next.stop()
  },
}

export const jsonlScenarios: readonly Scenario[] = [
  materialise,
  batches,
  continued,
  mend('is half a frame', (log, whole) => log.subarray(0, Math.floor((whole + log.length) / 2))),
  mend('lacks its checksum', log => log.subarray(0, -2)),
  mend('is zeros', (log, whole) => Buffer.concat([log.subarray(0, whole), Buffer.alloc(log.length - whole)])),
  mend('is garbage', (log, whole) => Buffer.concat([log.subarray(0, whole), Buffer.alloc(900, 'garbage')])),
  artifacts,
  fork,
  takeOver,
  sweep,
  reload,
  several,
  repack,
  remove,
]
