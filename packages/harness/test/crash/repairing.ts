import { dirname } from 'node:path'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { messageOf } from '../../src/kernel/index.ts'
import { filesOf, killStates, powerLossStates, randomOf } from '../../src/testing/index.ts'
import type { Finding } from '../../src/testing/index.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import { Machine } from './machine.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'
import { create, resume, store } from './scenarios.ts'

const id = SessionId('s1')

/** A log that needs repair. */
interface BrokenLog {
  readonly machine: Machine
  readonly bytes: Buffer
  /** What the session is before and after the repair. */
  readonly sound: readonly SessionEvent[]
  /** What a second writer made behind an earlier point. */
  readonly branch: readonly SessionEvent[]
}

export interface RepairOptions {
  readonly seed: string
  readonly limit: number
}

/** Repairs are cut off everywhere; whatever is left shows the session as it was, and is repaired again. */
export async function cutOffRepairs({ seed, limit }: RepairOptions): Promise<Row> {
  const tally = new Tally('repairing a damaged log, and one of two writers')
  const random = randomOf(`${seed} repairs`)
  for (const broken of [await damaged(), await written(true)]) {
    const { machine } = broken
    await machine.open().repair?.(id)
    const killed = killStates(machine.fs, random)
    const step = Math.max(1, Math.floor(killed.length / limit))
    const states = [
      ...killed.filter((_, index) => index % step === 0),
      ...powerLossStates(machine.fs, random, limit),
    ]
    for (const state of states) tally.add(state.text, await check(machine.after(state), broken))
  }
  return tally.row
}

/** Three batches; with a rival, two programs wrote the last one, each behind the same second. */
async function written(hasRival: boolean): Promise<BrokenLog> {
  const machine = new Machine()
  const program = await machine.start()
  const session = create(program)
  await session.artifacts.put(Buffer.from('a picture'), 'image/png')
  await store(program, session, ...turnOf('one'))
  await store(program, session, ...turnOf('two', 2))
  const shared = machine.log().length
  const rival = machine.torn(0, log => log)
  await store(program, session, ...turnOf('three', 3))
  const sound = session.events
  machine.kill()
  if (!hasRival) return { machine, bytes: machine.log(), sound, branch: [] }
  const other = await rival.start()
  const again = await resume(other)
  await store(other, again, ...turnOf('three by another', 3))
  const tail = rival.log().subarray(shared)
  machine.tearLog(0, log => Buffer.concat([log, tail]))
  return { machine, bytes: machine.log(), sound, branch: again.events }
}

/** A byte of the second batch is another. */
async function damaged(): Promise<BrokenLog> {
  const whole = await written(false)
  const { machine } = whole
  const at = machine.log().indexOf('three') - 700
  machine.tearLog(0, log => Buffer.concat([log.subarray(0, at), Buffer.from('?'), log.subarray(at + 1)]))
  const { events } = (await machine.open().read(id)) ?? { events: [] }
  return { ...whole, bytes: machine.log(), sound: events }
}

async function check(machine: Machine, broken: BrokenLog): Promise<readonly Finding[]> {
  const check = new Check(machine)
  try {
    await check.run(broken)
  } catch (error) {
    check.tell('available', messageOf(error))
  }
  return check.findings
}

class Check {
  readonly findings: Finding[] = []
  readonly #machine: Machine

  constructor(machine: Machine) {
    this.#machine = machine
  }

  tell(rule: Finding['rule'], text: string, lost = 0): void {
    this.findings.push({ rule, text, lost })
  }

  async run({ bytes, sound, branch }: BrokenLog): Promise<void> {
    const medium = this.#machine.open()
    const folder = dirname(this.#machine.logPathOf(id))
    await this.#expect('the session before', id, sound)
    const result = await medium.repair?.(id)
    if (result?.events !== sound.length) this.tell('available', `the repair kept ${result?.events} events`)
    await this.#expect('the repaired session', id, sound)
    const rows = (await medium.list()).filter(row => row.id !== id)
    if (rows.length !== Math.sign(branch.length)) this.tell('available', `${rows.length} branches are listed`)
    for (const row of rows) await this.#expect('the branch', row.id, branch)
    const kept = [...filesOf(this.#machine.fs.disk)].filter(([path]) =>
      path.startsWith(`${folder}/log-before-repair-`),
    )
    if (!kept.some(([, file]) => file.equals(bytes))) this.tell('acknowledged', 'the old log is not kept', 1)
    await this.#goOn()
  }

  async #goOn(): Promise<void> {
    const program = await this.#machine.start()
    const session = await resume(program)
    await store(program, session, ...turnOf('after', (session.last('turn/start')?.data.turn ?? 0) + 1))
    await program.stop()
    await this.#expect('the continued session', id, session.events)
  }

  async #expect(what: string, session: SessionId, wanted: readonly SessionEvent[]): Promise<void> {
    const events = (await this.#machine.open().read(session))?.events
    if (JSON.stringify(events) === JSON.stringify(wanted)) return
    const text = `${what} has ${events?.length} events where these ${wanted.length} are expected`
    this.tell('acknowledged', text, wanted.length)
  }
}
