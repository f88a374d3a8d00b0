import { randomUUID } from 'node:crypto'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionEventMap } from '@dsh/protocol'
import { messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { carryOut } from './carry-out.ts'
import type { CarriedOut } from './carry-out.ts'
import { RewindError } from './errors.ts'
import type { KeptReason } from './events.ts'
import { changedByUser, goalOf, ignoreOf } from './goal.ts'
import type { Goal } from './goal.ts'
import { beginJournal, endJournal, readJournal, setJournalAside } from './journal.ts'
import type { Journal } from './journal.ts'
import { refOf } from './keeper.ts'
import { rawPath, shownPath } from './paths.ts'
import type { RawPath } from './paths.ts'
import { planOf, without } from './plan.ts'
import type { Kept, Plan } from './plan.ts'
import { pointAt } from './points.ts'
import type {
  ForkAtOptions,
  PreviewFile,
  RewindOptions,
  RewindPreview,
  RewindResult,
  RewindTarget,
} from './service.ts'
import { withSource } from './writing.ts'
import type { Workspace } from './workspace.ts'
import type { Workspaces } from './workspaces.ts'

interface PlanHow {
  /** Points to the present state afterwards. */
  readonly ref: string
  readonly options: RewindOptions
}

interface Planned {
  readonly plan: Plan
  /** The present state. */
  readonly now: string
}

const namedFiles = 200
/** Workspaces that this program is rewinding. */
const busy = new Set<string>()

/** Plans and carries out rewinds. */
export class Rewinder {
  readonly #ctx: Context
  readonly #workspaces: Workspaces
  readonly #processes = createLocalProcesses()

  constructor(ctx: Context, workspaces: Workspaces) {
    this.#ctx = ctx
    this.#workspaces = workspaces
  }

  async preview(session: Session, target: RewindTarget, options: RewindOptions): Promise<RewindPreview> {
    const goal = goalOf(session, target, options)
    const { scope, to } = goal
    if (goal.commit === undefined) return { scope, to, files: [] }
    await this.recover(session)
    const workspace = await this.#openFor(session)
    const { repository } = workspace
    const ref = `refs/dsh/preview/${randomUUID()}`
    const { plan, now } = await this.#plan(workspace, goal, { ref, options })
    // Lines of what is no longer kept cannot be counted.
    const lines = await repository.changes(now, goal.commit).catch(() => [])
    await repository.dropNewRef(ref)
    const counts = new Map(lines.map(({ path, insertions, deletions }) => [path, { insertions, deletions }]))
    const files = [
      ...plan.steps.map(({ path, action }) => ({ path, status: action })),
      ...plan.kept.map(({ path, reason }) => ({ path, status: statusOf(reason), reason })),
    ]
    return {
      scope,
      to,
      files: files
        .toSorted((a, b) => (a.path < b.path ? -1 : 1))
        .map((file): PreviewFile => {
          const { insertions, deletions } = counts.get(file.path) ?? {}
          const shown = { ...file, path: shownPath(file.path) }
          return insertions === undefined || deletions === undefined
            ? shown
            : { ...shown, insertions, deletions }
        }),
    }
  }

  async apply(session: Session, target: RewindTarget, options: RewindOptions): Promise<RewindResult> {
    return await withSource(
      this.#ctx,
      session.id,
      source => this.#apply(source, target, options),
      options.signal,
    )
  }

  async #apply(source: Session, target: RewindTarget, options: RewindOptions): Promise<RewindResult> {
    const goal = goalOf(source, target, options)
    const { scope, to, undo } = goal
    await this.#assertFree(to.session, source)
    const workspace = await this.#openFor(source).catch((error: unknown) => {
      if (goal.commit !== undefined) throw error
      return undefined
    })
    return await this.#alone(workspace, async () => {
      const ref = refOf(source.id)
      const planned =
        workspace === undefined ? undefined : await this.#planFor(workspace, goal, { ref, options })
      if (scope === 'files' && undo === undefined && planned !== undefined && isIdle(planned.plan))
        return resultOf(planned, source.id)
      const journal = this.#journalOf(source, goal, planned, options)
      if (workspace !== undefined && !(await beginJournal(workspace.repository.folder, journal)))
        throw busyError(workspace.root)
      return await this.#complete(workspace, journal, source)
    })
  }

  #journalOf(
    source: Session,
    { scope, to, cut, commit, undo }: Goal,
    planned: Planned | undefined,
    { childId = SessionId(randomUUID()) }: RewindOptions,
  ): Journal {
    const isSame = cut === undefined || scope === 'files'
    return {
      owner: this.#processes.self(),
      nonce: randomUUID().slice(0, 8),
      scope,
      from: { session: source.id, seq: source.length - 1 },
      to,
      session: isSame ? to.session : childId,
      ...(isSame ? {} : { cut }),
      ...(planned !== undefined && commit !== undefined ? { plan: planned.plan } : {}),
      ...(planned === undefined ? {} : { backup: planned.now }),
      ...(undo === undefined ? {} : { undo }),
    }
  }

  /** Completes what another program, or an error, broke off; so the workspace is in no state between two. */
  async recover(session: Session): Promise<void> {
    const workspace = await this.#openFor(session).catch(() => undefined)
    if (workspace === undefined) return
    await this.#alone(workspace, async () => {
      const { root, repository } = workspace
      const journal = await readJournal(repository.folder)
      if (journal === undefined) return
      const tell = (message: string): void =>
        this.#ctx.emit('rewind/notice', { code: 'REWIND_BROKEN_OFF', message, workspace: root })
      if (journal === 'damaged') {
        await setJournalAside(repository.folder)
        tell(`what a rewind of "${root}" that was broken off had left to do cannot be read`)
        return
      }
      const isOwn = journal.owner.pid === this.#processes.self().pid
      if (!isOwn && !this.#processes.isDead(journal.owner)) throw busyError(root)
      tell(await this.#completed(workspace, journal))
    })
  }

  /** What became of it, for the person. */
  async #completed(workspace: Workspace, journal: Journal): Promise<string> {
    const what = `a rewind of "${workspace.root}" that was broken off`
    try {
      const { from } = journal
      await withSource(this.#ctx, from.session, source => this.#complete(workspace, journal, source))
      return `${what} has been completed; it goes on in session ${journal.session}`
    } catch (error) {
      const { code } = error as { readonly code?: unknown }
      if (code !== 'REWIND_POINT_GONE' && code !== 'SESSION_NOT_FOUND') throw error
      if (code === 'SESSION_NOT_FOUND') await this.#carryOut(workspace, journal)
      await endJournal(workspace.repository.folder)
      return code === 'SESSION_NOT_FOUND'
        ? `the files of ${what} have been completed: ${messageOf(error)}`
        : `${what} cannot be completed: ${messageOf(error)}`
    }
  }

  /** May be done again after it was broken off anywhere. */
  async #complete(
    workspace: Workspace | undefined,
    journal: Journal,
    source: Session,
  ): Promise<RewindResult> {
    const { plan, scope, session, backup } = journal
    const kept: Kept[] = [...(plan?.kept ?? [])]
    let written: Plan['steps'] = []
    let commit: string | undefined
    if (workspace !== undefined) {
      const out = await this.#carryOut(workspace, journal)
      written = out.done
      kept.push(...out.kept)
      const message = `${session} after a rewind of ${journal.from.session}`
      const taken = workspace.take({ ref: refOf(session), parent: backup, message })
      // Where files are left alone, a state that cannot be kept is no reason to fail.
      commit = (await (plan === undefined ? taken.catch(() => undefined) : taken))?.commit
    }
    const files = written.map(({ path, action }) => ({ path: shownPath(path), action }))
    const shownKept = kept.map(({ path, reason }) => ({ path: shownPath(path), reason }))
    await this.#log(journal, source, {
      scope,
      from: journal.from,
      to: journal.to,
      ...(commit === undefined ? {} : { commit }),
      ...(backup === undefined ? {} : { backup }),
      files: files.slice(0, namedFiles),
      written: files.length,
      kept: shownKept,
      ...(journal.undo === undefined ? {} : { undo: journal.undo }),
    })
    if (workspace !== undefined) {
      await endJournal(workspace.repository.folder)
      await workspace.rest()
    }
    return { session, scope, files, kept: shownKept, ...(backup === undefined ? {} : { backup }) }
  }

  async #carryOut({ raw, repository }: Workspace, { plan, nonce }: Journal): Promise<CarriedOut> {
    if (plan === undefined) return { done: [], kept: [] }
    return await carryOut(plan, { root: raw, nonce, blobs: oids => repository.blobs(oids) })
  }

  async #log(
    { session: id, cut }: Journal,
    source: Session,
    data: SessionEventMap['rewind/applied'],
  ): Promise<void> {
    const append = (session: Session): void => {
      if (!isLogged(session.last('rewind/applied'), data)) session.append('rewind/applied', data)
    }
    if (id === source.id) return await this.#ctx.sessions.whileLive(source, append)
    if (cut === undefined)
      return await withSource(this.#ctx, id, session => this.#ctx.sessions.whileLive(session, append))
    if (await this.#isStored(id)) return
    const child = childOf(source, id, cut)
    await this.#ctx.sessions.whileLive(child, append)
  }

  async fork(session: Session, { after = session.length - 1, childId }: ForkAtOptions): Promise<SessionId> {
    if (session.at(after) === undefined)
      throw new RewindError('REWIND_BAD_SEQ', `session "${session.id}" has no event ${after}`)
    const id = childId ?? SessionId(randomUUID())
    const openTurn = session.fold(turnCursor, { before: after + 1 }).openTurn !== undefined
    await this.#ctx.sessions.whileLive(childOf(session, id, { boundary: after, openTurn }), () => {})
    const point = pointAt(session, after)
    if (point === undefined) return id
    const workspace = await this.#openFor(session).catch(() => undefined)
    // What is not there any more cannot be kept.
    await workspace?.repository.setRef(refOf(id), point.commit).catch(() => {})
    return id
  }

  async #isStored(id: SessionId): Promise<boolean> {
    const rows = (await this.#ctx.get('sessionPersistence')?.list()) ?? []
    return this.#ctx.sessions.get(id) !== undefined || rows.some(row => row.id === id)
  }

  async #assertFree(id: SessionId, source: Session): Promise<void> {
    if (id !== source.id) await withSource(this.#ctx, id, async () => {})
  }

  /** One rewind of a workspace at a time. */
  async #alone<T>(workspace: Workspace | undefined, job: () => Promise<T>): Promise<T> {
    if (workspace === undefined) return await job()
    const { root } = workspace
    if (busy.has(root)) throw busyError(root)
    busy.add(root)
    try {
      return await job()
    } finally {
      busy.delete(root)
    }
  }

  async #openFor({ id, header: { cwd } }: Session): Promise<Workspace> {
    if (cwd === undefined) throw new RewindError('REWIND_OFF', `session "${id}" has no folder`)
    // The points of a session that lives here build on what this program knows already.
    const isLive = this.#ctx.sessions.get(id) !== undefined
    const workspace = await (isLive ? this.#workspaces.get(cwd) : this.#workspaces.open(cwd))
    if (workspace === undefined) throw new RewindError('REWIND_OFF', `restore points are off in "${cwd}"`)
    return workspace
  }

  /** Where files are left alone, a state that cannot be kept is no reason to refuse. */
  async #planFor(workspace: Workspace, goal: Goal, how: PlanHow): Promise<Planned | undefined> {
    return await this.#plan(workspace, goal, how).catch((error: unknown) => {
      if (goal.commit !== undefined) throw error
      return undefined
    })
  }

  async #plan(workspace: Workspace, goal: Goal, { ref, options }: PlanHow): Promise<Planned> {
    const { repository } = workspace
    const { commit, last = commit, since } = goal
    const message = 'before a rewind'
    const taken = await workspace.take({ ref, parent: last, message, signal: options.signal })
    if (commit === undefined || last === undefined)
      return { plan: { steps: [], kept: [], leaving: [], coming: [] }, now: taken.commit }
    const [now, target, left] = await Promise.all(
      [taken.commit, commit, last].map(each => repository.state(each)),
    )
    if (now === undefined || target === undefined || left === undefined) throw new TypeError('no state')
    const ignore = await ignoreOf(workspace, target)
    const byUser = await changedByUser(workspace, since)
    const overwrite = new Set((options.overwrite ?? []).map(rawPath))
    const wasIgnored = (path: RawPath): boolean => ignore.covers(path)
    const plan = planOf({ now, last: left, target, byUser, overwrite, wasIgnored })
    const lost = await repository.lost(plan.steps.flatMap(({ from = [], to = [] }) => [from, to].flat()))
    if (lost.size > 0) await workspace.distrust()
    return { plan: without(plan, lost), now: taken.commit }
  }
}

function childOf(
  source: Session,
  id: SessionId,
  { boundary, openTurn }: { readonly boundary: number; readonly openTurn: boolean },
): Session {
  const { cwd, agentPreset } = source.header
  const meta = {
    parentSession: source.id,
    seedLength: boundary + 1,
    ...(cwd === undefined ? {} : { cwd }),
    ...(agentPreset === undefined ? {} : { agentPreset }),
  }
  return source.branch(id, boundary + 1, { meta, closeTurn: openTurn })
}

/** What changes nothing is not logged: an undo means the last rewind that changed something. */
function isIdle({ steps, leaving, coming }: Plan): boolean {
  return steps.length + leaving.length + coming.length === 0
}

function resultOf({ plan, now }: Planned, session: SessionId): RewindResult {
  const kept = plan.kept.map(({ path, reason }) => ({ path: shownPath(path), reason }))
  return { session, scope: 'files', files: [], kept, backup: now }
}

function statusOf(reason: KeptReason): 'conflict' | 'unknown' {
  return reason === 'not-in-point' ? 'unknown' : 'conflict'
}

/** A rewind that was broken off between its log and its end has been told already. */
function isLogged(
  last: SessionEvent<'rewind/applied'> | undefined,
  { backup, from }: SessionEventMap['rewind/applied'],
): boolean {
  return (
    last?.data.backup === backup &&
    last?.data.from.session === from.session &&
    last.data.from.seq === from.seq
  )
}

function busyError(root: string): RewindError {
  return new RewindError('REWIND_BUSY', `another program is rewinding "${root}"`)
}
