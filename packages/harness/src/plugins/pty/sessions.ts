import { isAbsolute, join } from 'node:path'
import type { Agent } from '../../core/agent/index.ts'
import { joinErrors, Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import type { SandboxMode } from '../sandbox/index.ts'
import type { TerminalSignal, TerminalSize } from '../subprocess/index.ts'
import { PtyError } from './errors.ts'
import type {
  PtyBackend,
  PtyBackendSession,
  PtyPage,
  PtySend,
  PtySendOperation,
  PtySession,
  PtySessionId,
  PtySessions,
  PtySpawn,
} from './service.ts'

interface Entry {
  readonly id: PtySessionId
  readonly name: string | undefined
  readonly type: string
  readonly session: PtyBackendSession
  /** Of the owner's session when it was opened. */
  readonly standing: SandboxMode | undefined
  closing: Promise<void> | undefined
}

interface Owned {
  readonly entries: Map<PtySessionId, Entry>
  /** Names of those that are being opened, and how many these are. */
  readonly opening: Set<string>
  count: number
  /** Why sessions that are no longer there were closed. */
  readonly closed: Map<PtySessionId, string>
  isGone: boolean
}

const rank: Readonly<Record<SandboxMode, number>> = { 'read-only': 0, 'workspace-write': 1, 'full-access': 2 }
const mostReasons = 20
const narrowedText = (from: string, to: string): string =>
  `it was opened under ${from}, and the session is ${to} now`

/** Sessions by the agent they belong to; see `PtySessions`. */
export class PtySessionService extends Service implements PtySessions {
  private readonly own: Context
  private readonly backends = new Map<string, PtyBackend>()
  private readonly owners = new Map<Agent, Owned>()
  /** What could not be ended when it had to be; tried once more at the end. */
  private readonly leftovers = new Set<PtyBackendSession>()
  private readonly state = { count: 0, isDisposing: false }

  constructor(ctx: Context) {
    super(ctx, 'pty')
    this.own = ctx
  }

  registerBackend(backend: PtyBackend): Disposer {
    const { backends } = this
    const { type } = backend
    return this.ctx.effect(() => {
      if (backends.has(type))
        throw new PtyError('DUPLICATE_BACKEND', `a backend "${type}" is registered already`)
      backends.set(type, backend)
      return () => void backends.delete(type)
    }, `terminals of type ${type}`)
  }

  listBackends(): readonly string[] {
    return [...this.backends.keys()].toSorted()
  }

  async spawn(owner: Agent, request: PtySpawn, signal?: AbortSignal): Promise<PtySession> {
    const { type, name, cwd = '', token } = request
    const owned = this.ownedBy(owner)
    const backend = this.backends.get(type)
    if (backend === undefined)
      throw new PtyError('NO_BACKEND', `no terminals of type "${type}"; there are ${this.typesText()}`)
    signal?.throwIfAborted()
    if (name !== undefined) this.reserve(owned, name)
    owned.count++
    const id = `pty-${++this.state.count}`
    const standing = this.own.get('sandboxPolicy')?.modeOf(owner.session)
    try {
      const session = await backend.spawn({
        owner,
        sessionId: id,
        cwd: folderOf(owner, cwd),
        ...(token && { token }),
        ...(signal && { signal }),
      })
      await this.rollBackIfLate(owner, session, signal)
      const entry: Entry = { id, name, type, session, standing, closing: undefined }
      owned.entries.set(id, entry)
      return toSession(entry)
    } finally {
      owned.count--
      if (name !== undefined) owned.opening.delete(name)
    }
  }

  startSend(owner: Agent, id: PtySessionId, send: PtySend): PtySendOperation {
    return this.entryOf(owner, id).session.startSend(send)
  }

  read(
    owner: Agent,
    id: PtySessionId,
    { offset = 0, count = 500 }: { readonly offset?: number; readonly count?: number },
  ): PtyPage {
    return this.entryOf(owner, id).session.read({ offset, count })
  }

  signal(owner: Agent, id: PtySessionId, signal: TerminalSignal): boolean {
    return this.entryOf(owner, id).session.signal(signal)
  }

  resize(owner: Agent, id: PtySessionId, size: TerminalSize): void {
    this.entryOf(owner, id).session.resize(size)
  }

  get(owner: Agent, id: PtySessionId): PtySession {
    return toSession(this.entryOf(owner, id))
  }

  async kill(owner: Agent, id: PtySessionId, reason = 'it was closed'): Promise<boolean> {
    const owned = this.ownedBy(owner)
    const entry = this.entryOf(owner, id)
    const wasRunning = entry.session.status.state === 'running'
    await this.close(owned, entry, reason)
    return wasRunning
  }

  list(owner: Agent): readonly PtySession[] {
    return [...(this.owners.get(owner)?.entries.values() ?? [])].map(toSession)
  }

  hasOwnerActivity(owner: Agent): boolean {
    const owned = this.owners.get(owner)
    return owned !== undefined && owned.entries.size + owned.count > 0
  }

  /** Closes what was opened when its owner's session could do more than `mode` lets it do. */
  narrow(sessionId: string, mode: SandboxMode): void {
    for (const [owner, owned] of this.owners) {
      if (owner.session.id !== sessionId) continue
      for (const entry of owned.entries.values()) {
        if (!isWider(entry, mode)) continue
        const reason = narrowedText(entry.standing ?? 'no mode', mode)
        this.close(owned, entry, reason).catch((error: unknown) =>
          this.own.fiber.report(error, `terminal ${entry.id}`),
        )
      }
    }
  }

  /** Ends what an agent has; it gets nothing any more. */
  async leave(owner: Agent): Promise<void> {
    const owned = this.owners.get(owner)
    if (owned === undefined) return
    owned.isGone = true
    this.owners.delete(owner)
    const entries = [...owned.entries.values()]
    const ends = await Promise.allSettled(entries.map(entry => this.close(owned, entry, 'its agent ended')))
    for (const [index, end] of ends.entries())
      if (end.status === 'rejected') this.keepForLater(entries[index]?.session)
    throwJoined(ends)
  }

  async dispose(): Promise<void> {
    this.state.isDisposing = true
    const ends = await Promise.allSettled([...this.owners.keys()].map(owner => this.leave(owner)))
    const rest = [...this.leftovers]
    this.leftovers.clear()
    const retries = await Promise.allSettled(rest.map(session => session.close()))
    // What could be ended in the second attempt is no failure any more.
    throwJoined(rest.length === 0 ? ends : retries)
  }

  private ownedBy(owner: Agent): Owned {
    if (this.state.isDisposing) throw new PtyError('SERVICE_DISPOSING', 'terminals are being closed')
    if (this.own.agents.get(owner.id) !== owner)
      throw new PtyError('OWNER_NOT_LIVE', `agent "${owner.id}" has ended`)
    const known = this.owners.get(owner)
    if (known !== undefined) return known
    const owned: Owned = {
      entries: new Map(),
      opening: new Set(),
      count: 0,
      closed: new Map(),
      isGone: false,
    }
    this.owners.set(owner, owned)
    owner.ctx.effect(() => () => this.leave(owner), 'terminals')
    return owned
  }

  private entryOf(owner: Agent, id: PtySessionId): Entry {
    const owned = this.ownedBy(owner)
    const entry = owned.entries.get(id)
    if (entry === undefined) throw this.missing(owned, id)
    const mode = this.own.get('sandboxPolicy')?.modeOf(owner.session)
    if (mode !== undefined && entry.closing === undefined && isWider(entry, mode))
      this.narrow(owner.session.id, mode)
    if (entry.closing === undefined) return entry
    throw this.missing(owned, id)
  }

  private missing(owned: Owned, id: PtySessionId): PtyError {
    const isForeign = [...this.owners.values()].some(other => other !== owned && other.entries.has(id))
    if (isForeign) return new PtyError('FOREIGN_SESSION', `terminal "${id}" belongs to another agent`)
    const reason = owned.closed.get(id)
    const ids = [...owned.entries.values()]
      .filter(({ closing }) => closing === undefined)
      .map(each => each.id)
    const others = ids.length === 0 ? 'none is open' : `open are ${ids.join(', ')}`
    return new PtyError(
      'NO_SESSION',
      reason === undefined ? `no terminal "${id}"; ${others}` : `terminal "${id}" is closed: ${reason}`,
    )
  }

  private reserve({ entries, opening }: Owned, name: string): void {
    if (opening.has(name) || [...entries.values()].some(entry => entry.name === name))
      throw new PtyError('DUPLICATE_NAME', `a terminal is named "${name}" already`)
    opening.add(name)
  }

  /** What came up when nobody can have it any more is ended again; the cancel outranks what goes wrong with that. */
  private async rollBackIfLate(
    owner: Agent,
    session: PtyBackendSession,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const isLive = this.own.agents.get(owner.id) === owner && this.owners.has(owner)
    if (isLive && !this.state.isDisposing && signal?.aborted !== true) return
    try {
      await session.close()
    } catch (error) {
      this.keepForLater(session)
      this.own.fiber.report(error, 'terminals')
    }
    signal?.throwIfAborted()
    this.ownedBy(owner)
    throw new PtyError('OWNER_NOT_LIVE', `agent "${owner.id}" has ended`)
  }

  /** One close at a time; one that failed may be tried again. */
  private close(owned: Owned, entry: Entry, reason: string): Promise<void> {
    if (!owned.closed.has(entry.id)) owned.closed.set(entry.id, reason)
    const [oldest] = owned.closed.keys()
    if (owned.closed.size > mostReasons && oldest !== undefined) owned.closed.delete(oldest)
    entry.closing ??= entry.session.close().then(
      () => void owned.entries.delete(entry.id),
      (error: unknown) => {
        entry.closing = undefined
        throw error
      },
    )
    return entry.closing
  }

  private keepForLater(session: PtyBackendSession | undefined): void {
    if (session !== undefined) this.leftovers.add(session)
  }

  private typesText(): string {
    const types = this.listBackends()
    return types.length === 0 ? 'none' : types.map(type => `"${type}"`).join(', ')
  }
}

function isWider({ standing }: Entry, mode: SandboxMode): boolean {
  return rank[standing ?? 'full-access'] > rank[mode]
}

function toSession({ id: sessionId, name, type, session }: Entry): PtySession {
  const { pid, status, mode, notices } = session
  return { sessionId, ...(name !== undefined && { name }), type, pid, status, ...(mode && { mode }), notices }
}

function folderOf(owner: Agent, cwd: string): string {
  if (isAbsolute(cwd)) return cwd
  const { cwd: base } = owner.session.header
  if (base === undefined)
    throw new PtyError('SHELL_FAILED', `"${cwd}" is not absolute, and the session has no folder`)
  return join(base, cwd)
}

function throwJoined(ends: readonly PromiseSettledResult<unknown>[]): void {
  const failed = ends.flatMap(end => (end.status === 'rejected' ? [end.reason as unknown] : []))
  if (failed.length > 0) throw joinErrors(failed, 'terminals could not be closed')
}
