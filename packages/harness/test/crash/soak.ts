import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Session } from '../../src/core/session/index.ts'
import { examine, randomOf, userFact } from '../../src/testing/index.ts'
import type { Draft, Finding, Random } from '../../src/testing/index.ts'
import { append } from '../../src/testing/contracts/store-program.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import { JsonlLane, MemoryLane, SqliteLane } from './lanes.ts'
import type { Lane } from './lanes.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'

export interface SoakOptions {
  readonly seed: string
  readonly operations: number
  readonly crashes: number
}

/** The same random life of many sessions on three media, with crashes; what is left by each must be right and the same. */
export async function soak({ seed, operations, crashes }: SoakOptions): Promise<Row> {
  const run = new Soak(seed)
  await run.start()
  const between = Math.floor(operations / crashes)
  for (let crash = 1; crash <= crashes; crash += 1) {
    for (let count = 0; count < between; count += 1) await run.operate()
    await run.crash(crash)
  }
  await run.end()
  return run.tally.row
}

const mostSessions = 7

/** What all lanes know of one session. */
interface Life {
  readonly id: SessionId
  turn: number
  /** How many drafts of the turn are left. */
  rest: readonly Draft[]
  isLive: boolean
}

type Live = Map<SessionId, { readonly session: Session; readonly leave: () => void }>

class Soak {
  readonly tally: Tally
  readonly #random: Random
  readonly #lanes: readonly Lane[] = [new JsonlLane(), new SqliteLane(), new MemoryLane()]
  readonly #live = new Map<Lane, Live>(this.#lanes.map(lane => [lane, new Map()]))
  readonly #lives = new Map<SessionId, Life>()
  #next = 1
  #count = 0
  /** How often a session was the same on all media behind a crash. */
  #kept = 0

  constructor(seed: string) {
    this.tally = new Tally(`soak of three media, seed ${seed}`)
    this.#random = randomOf(`${seed} soak`)
  }

  async start(): Promise<void> {
    for (const lane of this.#lanes) await lane.start()
  }

  async end(): Promise<void> {
    const findings: Finding[] =
      this.#kept > 0 ? [] : [{ rule: 'acknowledged', text: 'no session was the same anywhere', lost: 1 }]
    this.tally.add('the whole run', findings)
    for (const lane of this.#lanes) await lane.end()
  }

  async operate(): Promise<void> {
    this.#count += 1
    const life = this.#pick()
    if (life === undefined) return this.#create()
    if (!life.isLive) return this.#operateCold(life)
    const dice = this.#random.below(12)
    if (dice < 5) await this.#append(life)
    else if (dice < 7) await this.#flush(life)
    else if (dice === 7) for (const { program } of this.#lanes) program.clock.expire()
    else if (dice === 8) await this.#keep(life)
    else if (dice === 9) await this.#fork(life)
    else if (dice === 10) await this.#retire(life)
    else await this.#compare(life)
  }

  /** All programs die; each medium is examined, and then all must hold the same. */
  async crash(nth: number): Promise<void> {
    const kind = this.#random.pick(['killed', 'power lost'] as const)
    const isMidway = this.#random.below(2) === 0
    if (isMidway) await this.#cutOff()
    for (const lane of this.#lanes) {
      const text = await lane.crash(kind, this.#random)
      const place = { open: () => lane.open() }
      const findings = await examine({ place }, new Map(lane.ledger.current))
      this.tally.add(`crash ${nth} behind operation ${this.#count}, ${kind}, ${lane.name}: ${text}`, findings)
      await lane.start()
      this.#live.get(lane)?.clear()
    }
    for (const life of this.#lives.values()) life.isLive = false
    await this.#settle()
  }

  /** One of the media dies in the middle of what it is told last. */
  async #cutOff(): Promise<void> {
    const [jsonl] = this.#lanes
    jsonl?.cutOff(1 + this.#random.below(12))
    const life = [...this.#lives.values()].find(({ isLive }) => isLive)
    if (life !== undefined) await this.#append(life)
    await this.#each(life, async (lane, session) => {
      await lane.program.ctx.sessions.flush(session).catch(() => undefined)
    })
  }

  #pick(): Life | undefined {
    const all = [...this.#lives.values()]
    return all.length < mostSessions && this.#random.below(6) === 0
      ? undefined
      : all[this.#random.below(all.length || 1)]
  }

  async #create(): Promise<void> {
    const id = SessionId(`s${this.#next++}`)
    this.#lives.set(id, { id, turn: 1, rest: [], isLive: true })
    for (const lane of this.#lanes) {
      const meta = { createdAt: 1_700_000_000_000, cwd: '/srv/project' }
      this.#enter(lane, lane.program.ctx.sessions.prepare(id, { meta }))
    }
  }

  #enter(lane: Lane, session: Session): void {
    const { sessions } = lane.program.ctx
    const leave = sessions.enter(session)
    sessions.announce(session)
    this.#live.get(lane)?.set(session.id, { session, leave })
  }

  async #each(life: Life | undefined, job: (lane: Lane, session: Session) => Promise<void>): Promise<void> {
    for (const lane of this.#lanes) {
      const live = life === undefined ? undefined : this.#live.get(lane)?.get(life.id)
      if (live !== undefined) await job(lane, live.session)
    }
  }

  /** A few drafts of a turn, or all of one. */
  async #append(life: Life): Promise<void> {
    if (life.rest.length === 0) {
      const size = this.#random.below(8) === 0 ? this.#random.below(90_000) : this.#random.below(600)
      life.rest = turnOf(`${this.#count} ${'x'.repeat(size)}`, life.turn++)
    }
    const count = 1 + this.#random.below(life.rest.length)
    const drafts = life.rest.slice(0, count)
    life.rest = life.rest.slice(count)
    await this.#each(life, async (_lane, session) => append(session, ...drafts))
  }

  async #flush(life: Life): Promise<void> {
    await this.#each(life, async ({ program }, session) => void (await program.ctx.sessions.flush(session)))
  }

  async #keep(life: Life): Promise<void> {
    const bytes = this.#random.bytes(1 + this.#random.below(40))
    await this.#each(life, async (_lane, session) => void (await session.artifacts.put(bytes, 'image/png')))
  }

  async #fork(life: Life): Promise<void> {
    if (life.rest.length > 0 || this.#lives.size >= mostSessions) return
    const id = SessionId(`s${this.#next++}`)
    this.#lives.set(id, { ...life, id, rest: [] })
    await this.#each(life, async (lane, parent) => {
      const child = parent.branch(id, parent.length, {
        meta: { createdAt: 1_700_000_000_000, parentSession: parent.id, seedLength: parent.length },
      })
      this.#enter(lane, child)
    })
  }

  /** The session is no longer live, and all of it is stored. */
  async #retire(life: Life): Promise<void> {
    if (life.rest.length > 0) return
    life.isLive = false
    for (const lane of this.#lanes) {
      const live = this.#live.get(lane)
      live?.get(life.id)?.leave()
      live?.delete(life.id)
      await lane.program.ctx.sessionPersistence.inspect(life.id).catch(() => undefined)
    }
    if (!(await this.#isStored(life))) this.#lives.delete(life.id)
    else await this.#compare(life)
  }

  async #operateCold(life: Life): Promise<void> {
    const dice = this.#random.below(6)
    if (dice === 0 && this.#lives.size > 3) return this.#remove(life)
    if (dice === 1) return this.#appendCold(life)
    life.isLive = true
    for (const lane of this.#lanes) {
      const { session } = await lane.program.ctx.sessionPersistence.prepare(life.id)
      this.#enter(lane, session)
      life.turn = (session.last('turn/start')?.data.turn ?? 0) + 1
      life.rest = []
    }
  }

  async #remove(life: Life): Promise<void> {
    this.#lives.delete(life.id)
    for (const lane of this.#lanes) await lane.program.ctx.sessionPersistence.remove(life.id)
  }

  async #appendCold(life: Life): Promise<void> {
    for (const lane of this.#lanes) {
      const persistence = lane.program.ctx.sessionPersistence
      const { events } = await persistence.load(life.id)
      const data = userFact(`cold ${this.#count}`)
      const event = {
        type: 'user/message',
        seq: events.length,
        time: 1,
        data,
        surfaceOp: 'append',
      } as SessionEvent
      await persistence.append(life.id, [event])
    }
  }

  async #isStored(life: Life): Promise<boolean> {
    const rows = await Promise.all(this.#lanes.map(lane => lane.program.ctx.sessionPersistence.list()))
    const stored = rows.map(list => list.some(row => row.id === life.id))
    if (new Set(stored).size > 1) this.#tell(life, 'some media have the session, others have not')
    return stored[0] === true
  }

  /** What a session is must not depend on the medium. */
  async #compare(life: Life): Promise<void> {
    const texts = await this.#shown(life.id)
    if (new Set(texts).size > 1) this.#tell(life, 'the media hold different events')
  }

  async #shown(id: SessionId): Promise<readonly string[]> {
    const shown: string[] = []
    for (const { program } of this.#lanes) {
      const stored = await program.ctx.sessionPersistence
        .inspect(id)
        .catch((error: { code?: string }) => error.code)
      shown.push(typeof stored === 'object' ? textOf(stored.events) : String(stored))
    }
    return shown
  }

  /** Media may keep more than they had to; a session of which they kept different parts is removed. */
  async #settle(): Promise<void> {
    for (const life of this.#lives.values()) {
      const texts = await this.#shown(life.id)
      const isSame = new Set(texts).size === 1 && texts[0] !== 'SESSION_NOT_FOUND'
      if (isSame) this.#kept += 1
      else await this.#remove(life)
    }
  }

  #tell({ id }: Life, text: string): void {
    const finding: Finding = { rule: 'acknowledged', id, text, lost: 1 }
    this.tally.add(`operation ${this.#count}`, [finding])
  }
}

/** Without the times, which each program has of its own. */
function textOf(events: readonly SessionEvent[]): string {
  return JSON.stringify(events.map(event => ({ ...event, time: 0 })))
}
