import { hash } from 'node:crypto'
import type { CallId, SessionEventMap, SessionId } from '@dsh/protocol'
import { messageOf } from '../../kernel/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { SkippedPaths } from './events.ts'
import { shownPath } from './paths.ts'
import { RewindError } from './errors.ts'
import { lastPoint } from './points.ts'
import type { PathChange, TreeFacts } from './repository.ts'
import type { KeptState } from './service.ts'
import type { Sight, Taken, Workspace } from './workspace.ts'
import type { Workspaces } from './workspaces.ts'

/** What is known of one session while it lives here. */
interface Watched {
  /** The turn whose beginning has a point, or gets one. */
  turn: number
  /** The first call since the last point that may have changed files. */
  dirty: { readonly turn: number; readonly step: number; readonly callId: CallId } | undefined
  /** Calls that may change files and run now. */
  calls: number
  /** How the files looked when the last such call ended. Never rejects. */
  sight: Promise<Sight | undefined> | undefined
  /** What is being taken; settles when all of it is, and never rejects. */
  running: Promise<void> | undefined
  /** The same up to the last point of a step. */
  steps: Promise<void> | undefined
}

interface Order {
  readonly turn: number
  readonly step?: number
  readonly callId?: CallId
  /** What is different was changed while no call of the session ran. */
  readonly by?: 'user'
  readonly after: number
}

const namedChanges = 50
const namedSkipped = 20

/**
 * Takes the points of living sessions: when a turn begins, after each step that may have changed files, and before a
 * call that may change files where somebody else changed some since.
 *
 * A point is begun only once the next request is out, and whatever may change files waits until it is taken. The files
 * are looked at when a call ends, so that what the user changes from then on is not taken for the session's.
 */
export class Keeper {
  readonly #workspaces: Workspaces
  readonly #report: (error: unknown) => void
  readonly #watched = new WeakMap<Session, Watched>()
  readonly #running = new Set<Promise<void>>()

  constructor(workspaces: Workspaces, report: (error: unknown) => void) {
    this.#workspaces = workspaces
    this.#report = report
  }

  /** Begins what is due. */
  begin(session: Session): void {
    const { openTurn } = session.fold(turnCursor)
    const watched = this.#of(session)
    this.#beginStep(session, watched)
    if (openTurn === undefined || watched.turn === openTurn) return
    watched.turn = openTurn
    const after = session.last('turn/start')?.seq ?? 0
    this.#run(session, watched, { turn: openTurn, after })
  }

  /** Resolves when all that is due has been taken; a call that may change files runs then. */
  async beforeChange(session: Session): Promise<void> {
    const watched = this.#of(session)
    // A call within a call: nobody knows which of them changes what.
    if (watched.calls > 0) return
    this.begin(session)
    await watched.running
    const { openTurn: turn } = session.fold(turnCursor)
    if (turn === undefined || watched.calls > 0) return
    const after = session.length - 1
    const { dirty } = watched
    if (dirty !== undefined && !(await this.#hasChangedSince(session, watched.sight))) return
    if (dirty !== undefined && watched.dirty === dirty) this.#runStep(session, watched, { ...dirty, after })
    this.#run(session, watched, { turn, by: 'user', after })
    await watched.running
  }

  /** Keeps the present state, with small ignored files, for a call that may destroy some; rejects where it cannot. */
  async keep(session: Session, callId: CallId): Promise<KeptState> {
    await this.beforeChange(session)
    const watched = this.#of(session)
    const { openTurn: turn } = session.fold(turnCursor)
    if (turn === undefined) throw new RewindError('REWIND_OFF', 'restore points are taken in turns alone')
    const after = session.length - 1
    // While another call runs nobody knows whose the changes are: they count as its own.
    const { dirty } = watched
    const order: Order =
      watched.calls > 0 && dirty !== undefined ? { ...dirty, after } : { turn, by: 'user', callId, after }
    const before = watched.running ?? Promise.resolve()
    const kept = before.then(() => this.#takeAll(session, order))
    this.#await(watched, kept.then(noResult, noResult))
    return await kept
  }

  /** A call that may change files runs until what is returned is called, once. */
  enter(session: Session, callId: CallId): () => void {
    const watched = this.#of(session)
    watched.calls++
    watched.sight = undefined
    const { openTurn: turn, openStep: step } = session.fold(turnCursor)
    if (turn !== undefined && step !== undefined) watched.dirty ??= { turn, step, callId }
    return () => {
      watched.calls--
      if (watched.calls === 0) watched.sight = this.#look(session)
    }
  }

  /**
   * Takes the points of steps that are due, and waits for them. A turn that changed nothing is not held up: its point
   * comes when it comes.
   */
  async settle(session: Session): Promise<void> {
    const watched = this.#watched.get(session)
    if (watched === undefined) return
    this.#beginStep(session, watched)
    if (watched.steps !== undefined) await watched.steps
  }

  /** Settles, and writes down what the next program can use. */
  async rest(session: Session): Promise<void> {
    await this.settle(session)
    const { cwd } = session.header
    const isResting = this.#watched.get(session)?.running === undefined
    if (isResting && cwd !== undefined) await this.#workspaces.opened(cwd)?.rest()
  }

  /** Gives up the points of turns that changed nothing, and resolves when nothing is being taken any more. */
  async close(): Promise<void> {
    this.#workspaces.close()
    await Promise.all(this.#running)
  }

  #of(session: Session): Watched {
    const known = this.#watched.get(session)
    if (known !== undefined) return known
    const watched: Watched = {
      turn: 0,
      dirty: undefined,
      calls: 0,
      sight: undefined,
      running: undefined,
      steps: undefined,
    }
    this.#watched.set(session, watched)
    return watched
  }

  /** Not while the step itself is open: its calls may still change files. */
  #beginStep(session: Session, watched: Watched): void {
    const { dirty } = watched
    const { openTurn, openStep } = session.fold(turnCursor)
    if (dirty === undefined || (openTurn === dirty.turn && openStep === dirty.step)) return
    this.#runStep(session, watched, { ...dirty, after: session.last('step/end')?.seq ?? session.length - 1 })
  }

  #runStep(session: Session, watched: Watched, order: Order): void {
    const { sight } = watched
    watched.dirty = undefined
    watched.sight = undefined
    this.#run(session, watched, order, sight)
  }

  async #look(session: Session): Promise<Sight | undefined> {
    // What stops it stops the point, which says so.
    return await this.#opened(session)
      ?.look()
      .catch(() => undefined)
  }

  async #hasChangedSince(session: Session, sight: Promise<Sight | undefined> | undefined): Promise<boolean> {
    const seen = await sight
    const workspace = this.#opened(session)
    if (seen === undefined || workspace === undefined) return true
    return await workspace.hasChangedSince(seen).catch(() => true)
  }

  #opened({ header: { cwd } }: Session): Workspace | undefined {
    return cwd === undefined ? undefined : this.#workspaces.opened(cwd)
  }

  #run(session: Session, watched: Watched, order: Order, sight?: Promise<Sight | undefined>): void {
    const before = Promise.all([sight, watched.running]).then(([seen]) => seen)
    const running = this.#take(session, order, before).catch(this.#report)
    if (order.step !== undefined) watched.steps = running
    this.#await(watched, running)
  }

  #await(watched: Watched, running: Promise<void>): void {
    watched.running = running
    this.#running.add(running)
    void running.then(() => {
      this.#running.delete(running)
      if (watched.running === running) watched.running = undefined
      if (watched.steps === running) watched.steps = undefined
    })
  }

  async #take(session: Session, order: Order, before: Promise<Sight | undefined>): Promise<void> {
    const sight = await before
    const { cwd } = session.header
    const workspace = cwd === undefined ? undefined : await this.#workspaces.get(cwd)
    if (cwd === undefined || workspace === undefined) return
    const signal = order.step === undefined ? this.#workspaces.closing : undefined
    const state = await stateOf(session, { order, workspace, sight, signal }).catch((error: unknown) => {
      this.#workspaces.switchOff(cwd, error)
    })
    if (state?.data !== undefined && signal?.aborted !== true) session.append('restore/point', state.data)
  }

  async #takeAll(session: Session, order: Order): Promise<KeptState> {
    const { cwd } = session.header
    if (cwd === undefined) throw new RewindError('REWIND_OFF', 'the session has no folder')
    const workspace = await this.#workspaces.get(cwd)
    if (workspace === undefined)
      throw new RewindError(
        'REWIND_OFF',
        `restore points are off: ${messageOf(this.#workspaces.reasonOf(cwd))}`,
      )
    const state = await stateOf(session, { order, workspace, withIgnored: true }).catch((cause: unknown) => {
      this.#workspaces.switchOff(cwd, cause)
      throw new RewindError('REWIND_OFF', `restore points are off: ${messageOf(cause)}`, { cause })
    })
    if (state.data !== undefined) session.append('restore/point', state.data)
    const point = lastPoint(session)
    if (point === undefined) throw new TypeError('a point was taken and is not there')
    const { facts, leftOut } = state.taken
    return { point, missing: [...facts.tooLarge, ...facts.unreadable], ignored: leftOut.map(shownPath) }
  }
}

/** Keeps the points of one session from being pruned. */
export function refOf(id: SessionId): string {
  return `refs/dsh/sessions/${hash('sha256', id, 'hex').slice(0, 32)}`
}

interface StateHow {
  readonly order: Order
  readonly workspace: Workspace
  readonly sight?: Sight | undefined
  readonly withIgnored?: true
  readonly signal?: AbortSignal | undefined
}

/** Without `data` where a step, or the user, left everything as it was. */
async function stateOf(
  session: Session,
  { order, workspace, sight, withIgnored, signal }: StateHow,
): Promise<{ readonly taken: Taken; readonly data?: SessionEventMap['restore/point'] }> {
  const { turn, step, by } = order
  const last = lastPoint(session)?.commit
  const message = `${session.id} turn ${turn}${step === undefined ? '' : ` step ${step}`}`
  const taken = await workspace.take({
    ref: refOf(session.id),
    parent: last,
    message,
    sight,
    withIgnored,
    signal,
  })
  const { commit, facts, ignored } = taken
  if ((step !== undefined || by !== undefined) && commit === last) return { taken }
  const since = last === undefined || last === commit ? [] : await changesSince(workspace, last, commit)
  const [parent, changes] = since === 'gone' ? [undefined, []] : [last, since]
  const changed = changes
    .slice(0, namedChanges)
    .map(({ path, status }) => ({ path: shownPath(path), status }))
  const skipped = skippedOf(facts, ignored)
  const data = {
    ...order,
    commit,
    ...(parent === undefined ? {} : { parent }),
    files: changes.length,
    insertions: sumOf(changes.map(({ insertions = 0 }) => insertions)),
    deletions: sumOf(changes.map(({ deletions = 0 }) => deletions)),
    ...(changed.length === 0 ? {} : { changed }),
    ...(skipped === undefined ? {} : { skipped }),
  }
  return { taken, data }
}

async function changesSince(
  { repository }: Workspace,
  last: string,
  commit: string,
): Promise<readonly PathChange[] | 'gone'> {
  try {
    return await repository.changes(last, commit)
  } catch (error) {
    if (await repository.has(last)) throw error
    return 'gone'
  }
}

/** Undefined where nothing was left out. */
function skippedOf(facts: TreeFacts, ignored: number): SkippedPaths | undefined {
  const { tooLarge, unreadable, special } = facts
  const lists = Object.entries({ tooLarge, unreadable, special }).filter(([, paths]) => paths.length > 0)
  if (lists.length === 0 && ignored === 0) return undefined
  const more = sumOf(lists.map(([, paths]) => Math.max(0, paths.length - namedSkipped)))
  return {
    ...(ignored === 0 ? {} : { ignored }),
    ...Object.fromEntries(lists.map(([name, paths]) => [name, paths.slice(0, namedSkipped)])),
    ...(more === 0 ? {} : { more }),
  }
}

function noResult(): void {}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}
