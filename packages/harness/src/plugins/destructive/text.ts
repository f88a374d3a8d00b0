import type { KeptState } from '../rewind/index.ts'
import { stash } from './git-refs.ts'
import type { Stake } from './stake.ts'

/** Why a call is asked for although others would let it run. */
export const outsideReason = (paths: readonly string[]): string =>
  `it would destroy what lies outside of the workspace, where no restore point is taken: ${listed(paths)}`
export const historyReason = (paths: readonly string[]): string =>
  `it would destroy the history of a git repository, which no restore point holds: ${listed(paths)}`
export const largeReason = (paths: readonly string[]): string =>
  `it would destroy files that are too large for a restore point: ${listed(paths)}`
export const noPointReason = (why: string): string =>
  `it would destroy files, and no restore point can be taken: ${why}`
export const lostReasons = {
  remote: 'it would destroy commits of another repository, which nothing here can bring back',
  objects: 'git would forget for good what it could still bring back',
} as const
export const noRewindText = 'nothing here takes them'
/** Of a call that nobody may allow beforehand. */
export const needsPersonText = 'a person has to allow this call'

/** What a result says of the state before, on one line. */
export function keptText(sessionId: string, { point, ignored, missing }: KeptState, stake: Stake): string {
  const left = [...missing, ...ignored.map(path => `${path} (ignored)`)]
  const without = left.length === 0 ? '' : `; it is without ${listed(left)}`
  const open = stake.isOpen || stake.outside.length > 0 ? '; nothing outside of the workspace is kept' : ''
  return `[the files before this call are kept: dsh rewind ${sessionId} ${point.seq} --files brings them back${without}${open}]`
}

export const unkeptText = (reasons: readonly string[]): string => `[not kept: ${reasons.join('; ')}]`

/** How commits are found again whose name went. */
export function refText(name: string, id: string): string {
  if (name.startsWith(stash)) return `[git: a stash was dropped: git stash store ${id} brings it back]`
  if (name.startsWith('refs/tags/')) {
    const tag = name.slice('refs/tags/'.length)
    return `[git: tag ${tag} was ${id}: git tag -f ${tag} ${id} brings it back]`
  }
  if (!name.startsWith('refs/heads/')) return `[git: ${name} was ${id}: git branch NAME ${id} keeps it]`
  const branch = name.slice('refs/heads/'.length)
  return `[git: branch ${branch} was ${id}: git branch -f ${branch} ${id} brings it back]`
}

const shown = 5

function listed(paths: readonly string[]): string {
  const more = paths.length - shown
  return paths.slice(0, shown).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
