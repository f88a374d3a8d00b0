import type { FileAction, KeptReason } from './events.ts'
import { foldersOf, rawPath } from './paths.ts'
import type { RawPath } from './paths.ts'
import type { TreeFile, TreeState } from './repository.ts'

export interface FileStep {
  readonly path: RawPath
  readonly action: FileAction
  /** What has to be there; nothing for `recreate`. */
  readonly from?: TreeFile
  /** What will be there; nothing for `delete`. */
  readonly to?: TreeFile
}

export interface Kept {
  readonly path: RawPath
  readonly reason: KeptReason
}

export interface Plan {
  /** In byte order of the paths. */
  readonly steps: readonly FileStep[]
  readonly kept: readonly Kept[]
  /** Folders that go where they are empty then, the deepest first. */
  readonly leaving: readonly RawPath[]
  /** Empty folders that are made. */
  readonly coming: readonly RawPath[]
}

export interface PlanInput {
  readonly now: TreeState
  /** What the session left. */
  readonly last: TreeState
  readonly target: TreeState
  /** Files and empty folders that somebody else changed after the target, however they look now. */
  readonly byUser: ReadonlySet<RawPath>
  readonly overwrite: ReadonlySet<RawPath>
  /** Whether the target left the path out for its ignore rules. */
  wasIgnored(path: RawPath): boolean
}

/** What to do so that the session's own changes since the target are gone, and nobody else's. */
export function planOf(input: PlanInput): Plan {
  const { now, target } = input
  const steps: FileStep[] = []
  const kept: Kept[] = []
  const paths = [...new Set([...now.files.keys(), ...target.files.keys()])].toSorted()
  for (const path of paths) {
    const [from, to] = [now.files.get(path), target.files.get(path)]
    if (isSameFile(from, to)) continue
    const reason = reasonToKeep(path, input)
    if (reason === undefined) steps.push(stepOf(path, from, to))
    else kept.push({ path, reason })
  }
  for (const path of leftOutNow(input)) kept.push({ path, reason: 'not-in-point' })
  return { steps, kept, leaving: leavingIn(input, steps), coming: comingIn(input) }
}

/** Leaves paths alone of which a content is lost, so that nothing is overwritten that could not be brought again. */
export function without(plan: Plan, lost: ReadonlySet<string>): Plan {
  if (lost.size === 0) return plan
  const isLost = ({ from, to }: FileStep): boolean =>
    [from, to].some(file => file !== undefined && lost.has(file.oid))
  const [gone, steps] = [plan.steps.filter(isLost), plan.steps.filter(step => !isLost(step))]
  return {
    ...plan,
    steps,
    kept: [...plan.kept, ...gone.map(({ path }) => ({ path, reason: 'not-in-point' as const }))],
  }
}

/** Folders in which the user changed something are not the session's alone. */
function leavingIn({ now, last, target, byUser }: PlanInput, steps: readonly FileStep[]): readonly RawPath[] {
  const changed = [...now.files.keys(), ...last.files.keys()].filter(
    path => !isSameFile(now.files.get(path), last.files.get(path)),
  )
  const shared = new Set([...byUser, ...changed].flatMap(path => [...foldersOf(path), path]))
  const wanted = foldersIn(target)
  const made = foldersIn(last)
  const gone = steps.flatMap(({ path, action }) => (action === 'delete' ? foldersOf(path) : []))
  const bare = emptyIn(now).flatMap(folder => [...foldersOf(folder), folder])
  const leaving = [...gone, ...bare.filter(folder => made.has(folder))]
  return [...new Set(leaving)]
    .filter(folder => !wanted.has(folder) && !shared.has(folder))
    .toSorted((a, b) => b.length - a.length)
}

function comingIn({ now, target, byUser }: PlanInput): readonly RawPath[] {
  const there = foldersIn(now)
  return emptyIn(target).filter(folder => !there.has(folder) && !byUser.has(folder))
}

function reasonToKeep(path: RawPath, input: PlanInput): KeptReason | undefined {
  const { now, last, target, byUser, overwrite } = input
  const [from, to] = [now.files.get(path), target.files.get(path)]
  if (from === undefined && isLeftOut(path, now)) return 'not-in-point'
  if (to === undefined && (isLeftOut(path, target) || input.wasIgnored(path))) return 'not-in-point'
  if (overwrite.has(path)) return undefined
  return byUser.has(path) || !isSameFile(from, last.files.get(path)) ? 'changed-by-user' : undefined
}

function stepOf(path: RawPath, from: TreeFile | undefined, to: TreeFile | undefined): FileStep {
  if (from === undefined) return { path, action: 'recreate', ...(to && { to }) }
  return to === undefined ? { path, action: 'delete', from } : { path, action: 'restore', from, to }
}

function isSameFile(a: TreeFile | undefined, b: TreeFile | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.oid === b.oid && a.kind === b.kind && a.mode === b.mode
}

/** Large files and the like that are there now and were not in the target, left out or not. */
function leftOutNow({ now, target }: PlanInput): readonly RawPath[] {
  const isNew = (path: RawPath): boolean => !target.files.has(path) && !isLeftOut(path, target)
  return [...now.facts.tooLarge, ...now.facts.unreadable].map(rawPath).filter(isNew)
}

/** Itself, or with a folder that could not be read. */
function isLeftOut(path: RawPath, { facts }: TreeState): boolean {
  const left = new Set([...facts.tooLarge, ...facts.unreadable, ...facts.special].map(rawPath))
  return left.size > 0 && [path, ...foldersOf(path)].some(each => left.has(each))
}

function foldersIn(state: TreeState): ReadonlySet<RawPath> {
  const empty = emptyIn(state)
  return new Set([...empty, ...[...state.files.keys(), ...empty].flatMap(foldersOf)])
}

function emptyIn({ facts }: TreeState): readonly RawPath[] {
  return facts.empty.map(rawPath)
}
