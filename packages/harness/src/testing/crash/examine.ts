import { isDeepStrictEqual } from 'node:util'
import type { SessionEvent, SessionId } from '@dsh/protocol'
import { lintLog } from '../../core/invariants/index.ts'
import {
  deriveEventMessage,
  pendingCalls,
  Session,
  tokenUsage,
  turnCursor,
} from '../../core/session/index.ts'
import type { SessionPersistence, StoredSession } from '../../core/session/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { startProgram } from '../contracts/store-program.ts'
import type { StorePlace, StoreProgram } from '../contracts/store-program.ts'
import { userFact } from '../facts.ts'
import type { Expectations, Expected } from './ledger.ts'

/** Something that is not as it must be after a crash. */
export interface Finding {
  readonly rule: CrashRule
  readonly id?: SessionId
  readonly text: string
  /** Events that somebody was told are durable, and that are not there. */
  readonly lost: number
}

export type CrashRule =
  /** What was acknowledged is there, byte for byte. */
  | 'acknowledged'
  /** Seqs count from 0, and the header is the one that was given. */
  | 'contiguous'
  /** Turns, steps and calls are closed, and nothing opens or ends twice. */
  | 'balanced'
  /** Looking changes nothing, and shows the same each time. */
  | 'idempotent'
  /** Nothing is there that nobody appended, but for what ends an open turn. */
  | 'no invention'
  /** What the world outside has seen is accounted for: requests that were sent, tools that ran. */
  | 'witnessed'
  /** What is derived equals a fresh fold of the log. */
  | 'derived'
  /** The session goes on. */
  | 'continuing'
  /** The session opens, and shows itself in the list. */
  | 'available'

/** What a crash left. */
export interface Remains {
  /** Each opening is as if a program started after the crash. */
  readonly place: Pick<StorePlace, 'open'>
  /** Every byte that is stored, and when it was written; read without the medium. */
  readonly fingerprint?: () => string
}

interface Found {
  readonly id: SessionId
  readonly expected: Expected
  /** What is stored. */
  readonly raw: readonly SessionEvent[]
  /** What is shown: stored events and what ends an open turn. */
  readonly shown: readonly SessionEvent[]
}

/**
 * Opens what a crash left as the next program would: looks at every session, twice, loads it, goes on with it, and has a
 * third program look again. Gives everything that is not right; nothing = nothing was lost.
 */
export async function examine(remains: Remains, expectations: Expectations): Promise<readonly Finding[]> {
  const examination = new Examination(remains)
  const found = await examination.look(expectations)
  const lengths = await examination.goOn(found)
  await examination.lookAgain(lengths)
  return examination.findings
}

class Examination {
  readonly findings: Finding[] = []
  readonly #remains: Remains

  constructor(remains: Remains) {
    this.#remains = remains
  }

  async look(expectations: Expectations): Promise<readonly Found[]> {
    const before = this.#remains.fingerprint?.()
    const found = await this.#inProgram(async program => {
      const ids = await this.#list(program.ctx.sessionPersistence, expectations)
      const all: Found[] = []
      for (const [id, expected] of expectations) {
        if (!ids.has(id)) continue
        const one = await this.#attempt(id, expected.safe, () => this.#lookAt(program, id, expected))
        if (one !== undefined) all.push(one)
      }
      return all
    })
    if (this.#remains.fingerprint?.() !== before)
      this.#tell('idempotent', 'looking at the sessions wrote something')
    return found ?? []
  }

  async goOn(found: readonly Found[]): Promise<ReadonlyMap<SessionId, number>> {
    const lengths = new Map<SessionId, number>()
    await this.#inProgram(async program => {
      for (const one of found) {
        const length = await this.#attempt(one.id, 0, () => this.#goOnWith(program, one))
        if (length !== undefined) lengths.set(one.id, length)
      }
    })
    return lengths
  }

  async lookAgain(lengths: ReadonlyMap<SessionId, number>): Promise<void> {
    await this.#inProgram(async program => {
      for (const [id, length] of lengths) {
        await this.#attempt(id, 0, async () => {
          const { events, readOnly } = await program.ctx.sessionPersistence.inspect(id)
          if (readOnly !== undefined || events.length !== length)
            this.#tell(
              'continuing',
              `${events.length} events where ${length} were stored; ${readOnly ?? ''}`,
              id,
            )
          this.#checkOrder(id, events)
          this.#checkIdentities(id, events)
          await this.#verify(program, id)
        })
      }
    })
  }

  async #verify({ ctx }: StoreProgram, id: SessionId): Promise<void> {
    const { problems } = await ctx.sessionPersistence.verify(id)
    for (const { code, message } of problems) this.#tell('available', `${code}: ${message}`, id)
  }

  async #list(persistence: SessionPersistence, expectations: Expectations): Promise<ReadonlySet<SessionId>> {
    const rows = await persistence.list()
    for (const row of rows) {
      if ('problem' in row) this.#tell('available', `the list says: ${row.problem}`, row.id)
      else if (!expectations.has(row.id)) this.#tell('no invention', 'nobody began this session', row.id)
    }
    const ids = new Set(rows.map(({ id }) => id))
    if (ids.size < rows.length) this.#tell('available', 'a session is listed twice')
    for (const [id, { safe, removal }] of expectations) {
      if (removal === 'done' && ids.has(id)) this.#tell('no invention', 'it was removed, and is there', id)
      if (removal === 'none' && safe > 0 && !ids.has(id))
        this.#tell('acknowledged', 'the session is gone', id, safe)
    }
    return ids
  }

  async #lookAt({ ctx }: StoreProgram, id: SessionId, expected: Expected): Promise<Found> {
    const persistence = ctx.sessionPersistence
    const stored = await persistence.readFrom(id, 0)
    this.#checkStored(id, stored, expected)
    const first = await persistence.inspect(id)
    const again = await persistence.inspect(id)
    if (textOf(first.events) !== textOf(again.events)) this.#tell('idempotent', 'two looks show two logs', id)
    if (first.readOnly !== undefined) this.#tell('available', `it opens read-only: ${first.readOnly}`, id)
    const raw = stored.events
    if (textOf(first.events.slice(0, raw.length)) !== textOf(raw))
      this.#tell('no invention', 'what is shown does not begin with what is stored', id)
    this.#checkOrder(id, first.events)
    for (const witness of expected.witnesses) {
      const text = witness(raw)
      if (text !== undefined) this.#tell('witnessed', text, id, 1)
    }
    await this.#checkArtifacts(persistence, id, expected)
    return { id, expected, raw, shown: first.events }
  }

  #checkStored(id: SessionId, { header, events, gaps }: StoredSession, expected: Expected): void {
    if (!isDeepStrictEqual(header, expected.header)) this.#tell('contiguous', 'the header is another', id)
    for (const gap of gaps ?? []) this.#tell('available', `the log has a gap: ${gap.reason}`, id)
    const length = Math.min(events.length, expected.events.length)
    let same = 0
    while (same < length && textOfEvent(events[same]) === textOfEvent(expected.events[same])) same += 1
    const lost = expected.safe - same
    if (lost > 0 && expected.removal === 'none')
      this.#tell('acknowledged', `${same} of ${expected.safe} acknowledged events are there`, id, lost)
    if (same < events.length)
      this.#tell('no invention', `event ${same} of ${events.length} was never appended so`, id)
  }

  async #goOnWith({ ctx, notices }: StoreProgram, { id, shown, expected }: Found): Promise<number> {
    const persistence = ctx.sessionPersistence
    for (const turn of ['first', 'second']) {
      const { events } = await persistence.load(id)
      if (textOf(events) !== textOf(shown)) this.#tell('idempotent', `the ${turn} load gives another log`, id)
    }
    const { session } = await persistence.prepare(id)
    this.#checkFolds(session)
    ctx.sessions.enter(session)
    ctx.sessions.announce(session)
    // What can be seen is not durable yet for that.
    for (const bytes of expected.artifacts.values()) await session.artifacts.put(bytes, 'image/png')
    session.append('user/message', userFact('after the crash', `after ${session.length}`), {
      surfaceOp: 'append',
    })
    await ctx.sessions.flush(session)
    for (const { code, message } of notices)
      if (code !== 'TAIL_CUT') this.#tell('continuing', `${code}: ${message}`, id)
    return session.length
  }

  #checkOrder(id: SessionId, events: readonly SessionEvent[]): void {
    const wrong = events.findIndex(({ seq }, index) => seq !== index)
    if (wrong !== -1) this.#tell('contiguous', `event ${wrong} has seq ${events[wrong]?.seq}`, id)
    const [violation] = lintLog(events)
    if (violation !== undefined) this.#tell('balanced', JSON.stringify(violation), id)
    const session = Session.create(id, events)
    if (session.fold(turnCursor).openTurn !== undefined) this.#tell('balanced', 'a turn is open', id)
    if (session.fold(pendingCalls).length > 0) this.#tell('balanced', 'a call has no result', id)
  }

  #checkFolds(session: Session): void {
    const { header, events } = session
    const fresh = Session.create(session.id, events, header)
    for (const fold of [turnCursor, pendingCalls, tokenUsage]) {
      const definition = fold as typeof turnCursor
      if (!isDeepStrictEqual(session.fold(definition), fresh.fold(definition)))
        this.#tell('derived', 'a fold of the resumed session is not that of its log', session.id)
    }
    if (!isDeepStrictEqual(session.messages, fresh.messages))
      this.#tell('derived', 'the messages of the resumed session are not those of its log', session.id)
  }

  #checkIdentities(id: SessionId, events: readonly SessionEvent[]): void {
    const ids = events.flatMap(event => (isAppended(event) ? (deriveEventMessage(event)?.id ?? []) : []))
    if (new Set(ids).size < ids.length) this.#tell('continuing', 'two messages have one id', id)
  }

  async #checkArtifacts(
    persistence: SessionPersistence,
    id: SessionId,
    { artifacts }: Expected,
  ): Promise<void> {
    if (artifacts.size === 0) return
    const session = await persistence.view(id)
    for (const [sha256, bytes] of artifacts) {
      const found = await session.artifacts.get(sha256)
      if (found === undefined || Buffer.compare(found, bytes) !== 0)
        this.#tell('acknowledged', `artifact ${sha256} is ${found === undefined ? 'gone' : 'another'}`, id, 1)
    }
  }

  async #inProgram<T>(job: (program: StoreProgram) => Promise<T>): Promise<T | undefined> {
    const program = await startProgram(this.#remains.place)
    const result = await this.#attempt(undefined, 0, () => job(program))
    await this.#attempt(undefined, 0, () => program.stop())
    return result
  }

  /** What throws is a session that cannot be had. */
  async #attempt<T>(id: SessionId | undefined, lost: number, job: () => Promise<T>): Promise<T | undefined> {
    try {
      return await job()
    } catch (error) {
      const { code = 'error' } = error as { readonly code?: string }
      this.#tell('available', `${code}: ${messageOf(error)}`, id, lost)
      return undefined
    }
  }

  #tell(rule: CrashRule, text: string, id?: SessionId, lost = 0): void {
    this.findings.push({ rule, text, lost, ...(id === undefined ? {} : { id }) })
  }
}

function isAppended(event: SessionEvent): boolean {
  return event.surfaceOp === 'append'
}

const texts = new WeakMap<SessionEvent, string>()

/** Expected events are compared with thousands of logs. */
function textOfEvent(event: SessionEvent | undefined): string {
  if (event === undefined) return ''
  const text = texts.get(event) ?? JSON.stringify(event)
  texts.set(event, text)
  return text
}

function textOf(events: readonly SessionEvent[]): string {
  return events.map(textOfEvent).join('\n')
}
