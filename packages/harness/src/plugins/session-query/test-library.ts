import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { SessionStore } from '../../core/session/index.ts'
import type { Session, SessionRow } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { logOf, MemoryStore } from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { mountPersistence } from '../persistence/index.ts'
import type { Medium } from '../persistence/index.ts'
import { sessionQuery } from './index.ts'
import type { SessionQuery } from './index.ts'
import type { SessionQueryInput } from './config.ts'

export interface LibraryOptions {
  readonly config?: SessionQueryInput
  /** Changes what the store answers. */
  readonly medium?: (medium: Medium) => Medium
  readonly store?: MemoryStore
  readonly path?: string
  /** Has sessions already. */
  readonly ctx?: Context
}

/** Stored and live sessions with a query over them, in files of the test's own. */
export interface Library {
  readonly ctx: Context
  readonly query: SessionQuery
  readonly store: MemoryStore
  readonly path: string
  /** Which events were read for the index since the last look, as `id from seq`. */
  streamed(): readonly string[]
  /** How often a whole log was asked for since the last look. */
  inspected(): number
  put(id: string, drafts: readonly Draft[], meta?: Partial<SessionHeader>): Promise<SessionId>
  /** Appends to a stored log. */
  grow(id: string, drafts: readonly Draft[]): Promise<void>
  /** A session that lives here until the given function is called; its store is told of it. */
  live(id: string, meta?: Partial<SessionHeader>): { readonly session: Session; leave(): Promise<void> }
}

export async function openLibrary(t: TestContext, options: LibraryOptions = {}): Promise<Library> {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-query-'))
  const { store = new MemoryStore(), path = join(folder, 'cache', 'index.sqlite') } = options
  let streams: string[] = []
  let reads = 0
  const opened = store.open()
  const counted: Medium = {
    ...opened,
    read: (id, rest) => {
      reads += 1
      return opened.read(id, rest)
    },
    stream: (id, rest) => {
      streams.push(`${id} from ${rest?.fromSeq ?? 0}`)
      return opened.stream?.(id, rest) ?? []
    },
  } as Medium
  const medium = options.medium?.(counted) ?? counted
  const ctx = options.ctx ?? new Context()
  if (options.ctx === undefined) await ctx.plugin(SessionStore)
  await ctx.plugin({
    name: 'store-memory',
    inject: ['sessions'],
    apply: inner => mountPersistence(inner, medium, { writeBatchMaxDelayMs: 60_000 }),
  })
  await ctx.plugin(sessionQuery, { path, ...options.config })
  t.after(async () => {
    await ctx.dispose()
    rmSync(folder, { recursive: true, force: true })
  })
  const persistence = ctx.sessionPersistence
  return {
    ctx,
    query: ctx.sessionQuery,
    store,
    path,
    streamed() {
      const seen = streams
      streams = []
      return seen
    },
    inspected() {
      const seen = reads
      reads = 0
      return seen
    },
    async put(name, drafts, meta = {}) {
      const id = SessionId(name)
      await persistence.create({ version: 0, id, createdAt: 1_700_000_000_000, ...meta })
      await persistence.append(id, logOf(...drafts))
      return id
    },
    async grow(name, drafts) {
      const id = SessionId(name)
      const { length } = store.events(id)
      const events = logOf(...drafts).map(event => ({ ...event, seq: event.seq + length }))
      await persistence.append(id, events as SessionEvent[])
    },
    live(name, meta = {}) {
      const session = ctx.sessions.prepare(SessionId(name), { meta })
      const leave = ctx.sessions.enter(session)
      ctx.sessions.announce(session)
      return {
        session,
        async leave() {
          await ctx.sessions.flush(session)
          leave()
          await ctx.sessionPersistence.inspect(session.id)
        },
      }
    },
  }
}

/** The ids of what was found, each with the seqs of its hits. */
export async function found(query: SessionQuery, text: string): Promise<Record<string, readonly number[]>> {
  const { sessions } = await query.searchSessions({ query: text, hitsPerSession: 10 })
  return Object.fromEntries(sessions.map(({ record, hits }) => [record.id, hits.map(({ seq }) => seq)]))
}

/** A row of a session that cannot be read. */
export function brokenRow(name: string, problem: string): SessionRow {
  return { id: SessionId(name), problem, path: `memory:${name}` }
}
