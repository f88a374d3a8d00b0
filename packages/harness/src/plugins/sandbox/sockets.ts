import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { canonical } from './canonical.ts'
import { ownGroups, readTextNow } from './env.ts'

/** Milliseconds. Of what is younger much is gone in a moment, and what is gone cannot be mounted over. */
const settledMs = 10_000

/** Seven columns, then the path as it was bound. */
const boundByPath = /^(?:\S+ +){7}(\/.+)$/gm

interface Looker {
  /** Of the processes that might connect. */
  readonly uid: number | undefined
  /** As the system tells it. */
  readonly table?: string
}

/**
 * The real paths of sockets that programs of this machine are reached by, but for those made just now: the ones that come
 * and go would change the world with every command.
 */
export function settledSockets({ uid, table = readTextNow('/proc/net/unix') ?? '' }: Looker): string[] {
  const named = new Set([...table.matchAll(boundByPath)].map(([, path = '']) => path))
  return [...new Set([...named].map(canonical))].filter(
    path => isSettled(path) && (uid !== 0 || isReachedByRoot(path)),
  )
}

function isSettled(path: string): boolean {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    const age = Date.now() - (stats?.mtimeMs ?? 0)
    return stats?.isSocket() === true && !(age >= 0 && age < settledMs)
  } catch {
    // Who may not look may not connect.
    return false
  }
}

/** Whether a root without capabilities gets there: to one with them all folders of others look open. */
function isReachedByRoot(path: string): boolean {
  const gids = ownGroups()
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    const { uid: owner, gid, mode } = lstatSync(at)
    const mayPass = owner === 0 ? 0o100 : gids.includes(gid) ? 0o010 : 0o001
    if ((mode & mayPass) === 0) return false
  }
  return true
}
