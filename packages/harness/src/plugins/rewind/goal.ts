import type { Session } from '../../core/session/index.ts'
import { RewindError } from './errors.ts'
import type { LogPlace, RewindScope } from './events.ts'
import { Ignore, parseIgnoreRules } from './ignore.ts'
import { parentOf, rawPath } from './paths.ts'
import type { RawPath } from './paths.ts'
import { cutBefore } from './place.ts'
import type { Cut } from './place.ts'
import { lastPoint, pointAt, pointsOf } from './points.ts'
import type { Repository, TreeState } from './repository.ts'
import type { RestorePoint, RewindOptions, RewindTarget } from './service.ts'
import type { Workspace } from './workspace.ts'

/** Where a rewind leads. */
export interface Goal {
  readonly scope: RewindScope
  readonly to: LogPlace
  /** Where a new session is cut off. */
  readonly cut?: Cut
  /** The state of the files. */
  readonly commit?: string
  /** What the session left, for telling its own changes from the user's. */
  readonly last?: string
  /** Points that were taken since. */
  readonly since: readonly RestorePoint[]
  readonly undo?: true
}

export function goalOf(session: Session, target: RewindTarget, { scope = 'both' }: RewindOptions): Goal {
  const last = lastPoint(session)?.commit
  const known = last === undefined ? {} : { last }
  if (target === 'undo') return { ...undoOf(session, scope), ...known }
  const own = scope === 'files' ? pointsOf(session).find(({ seq }) => seq === target) : undefined
  if (own !== undefined)
    return {
      scope,
      to: { session: session.id, seq: own.after },
      commit: own.commit,
      ...known,
      since: pointsAfter(session, own.seq),
    }
  const cut = cutBefore(session, target)
  const to = { session: session.id, seq: cut.boundary }
  if (scope === 'conversation') return { scope, to, cut, ...known, since: [] }
  const point = pointAt(session, cut.filesAfter)
  if (point === undefined)
    throw new RewindError(
      'REWIND_NO_POINT',
      `no restore point of session "${session.id}" is as old as event ${target}`,
    )
  return { scope, to, cut, commit: point.commit, ...known, since: pointsAfter(session, point.seq) }
}

function undoOf(session: Session, wanted: RewindScope): Goal {
  const event = session.last('rewind/applied')
  if (event === undefined)
    throw new RewindError('REWIND_NOTHING_TO_UNDO', `session "${session.id}" was never rewound`)
  const { data, seq } = event
  const scope = wanted === 'both' ? data.scope : wanted
  if (data.scope !== 'both' && data.scope !== scope)
    throw new RewindError(
      'REWIND_NOTHING_TO_UNDO',
      `the last rewind of session "${session.id}" took back the ${data.scope} alone`,
    )
  const to = scope === 'files' ? { session: session.id, seq: session.length - 1 } : data.from
  const files = scope === 'conversation' || data.backup === undefined ? {} : { commit: data.backup }
  return { scope, to, ...files, since: pointsAfter(session, seq), undo: true }
}

function pointsAfter(session: Session, seq: number): readonly RestorePoint[] {
  return pointsOf(session).filter(point => point.seq > seq)
}

/**
 * Files and empty folders that differ at the beginning of a turn, or before a call: changed by nobody of the session.
 */
export async function changedByUser(
  { repository }: Workspace,
  points: readonly RestorePoint[],
): Promise<ReadonlySet<RawPath>> {
  const paths = new Set<RawPath>()
  for (const { kind, parent, commit, files, changed, kept = [] } of points) {
    for (const path of kept) paths.add(rawPath(path))
    if (kind === 'step' || kind === 'rewind' || parent === undefined || parent === commit) continue
    const all = files === changed.length ? changed.map(({ path }) => rawPath(path)) : undefined
    for (const path of all ?? (await repository.changes(parent, commit)).map(change => change.path))
      paths.add(path)
    for (const path of await otherwiseChanged(repository, parent, commit)) paths.add(path)
  }
  return paths
}

/** Files of which the permission bits alone are different, and empty folders that came or went. */
async function otherwiseChanged(
  repository: Repository,
  parent: string,
  commit: string,
): Promise<readonly RawPath[]> {
  const states = await Promise.all([parent, commit].map(each => repository.state(each))).catch(
    (error: unknown) => {
      // It was named by the log, as far as it can be.
      if (error instanceof RewindError && error.code === 'REWIND_POINT_GONE') return []
      throw error
    },
  )
  const [before, after] = states
  if (before === undefined || after === undefined) return []
  const files = [...after.files].flatMap(([path, { mode }]) => {
    const last = before.files.get(path)
    return last === undefined || last.mode === mode ? [] : [path]
  })
  const [had, has] = [before, after].map(({ facts }) => new Set(facts.empty))
  const folders = [...(had?.symmetricDifference(has ?? had) ?? [])]
  return [...files, ...folders.map(rawPath)]
}

/** What the rules of a state leave out. */
export async function ignoreOf({ repository }: Workspace, { files, facts }: TreeState): Promise<Ignore> {
  const found = [...files].filter(([path, { kind }]) => /(^|\/)\.gitignore$/.test(path) && kind !== '120000')
  const contents = await repository.blobs(found.map(([, { oid }]) => oid))
  const rules = new Map(
    found.map(([path], index) => [
      parentOf(path),
      parseIgnoreRules(Buffer.from(contents[index] ?? []).toString('latin1')),
    ]),
  )
  return new Ignore(folder => rules.get(folder), parseIgnoreRules(facts.exclude))
}
