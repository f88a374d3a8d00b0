import { isAlive, processTable, readEntry, startedWith } from './process-table.ts'
import type { TableEntry } from './process-table.ts'

export type SendSignal = (pid: number, signal: NodeJS.Signals | 0) => void

/** The process a tree grew from, leader of its own group and session. After its end the number may be another's. */
export interface TreeRoot {
  readonly pid: number
  readonly hasExited: boolean
}

/**
 * The processes of `roots` and all that came of them: members of their groups and sessions, what was started with
 * `marker` in its environment, and the children of all these.
 *
 * A process that leaves the session, loses its parent and wiped its environment is not found.
 */
export function findTree(roots: readonly TreeRoot[], marker: string): readonly TableEntry[] {
  const table = processTable()
  const running = new Set(table.map(entry => entry.pid))
  const own = new Set(roots.filter(root => !root.hasExited || !running.has(root.pid)).map(root => root.pid))
  const found = new Map<number, TableEntry>()
  for (const entry of table) {
    if (own.has(entry.group) || own.has(entry.session) || carries(entry, marker)) found.set(entry.pid, entry)
  }
  addChildren(found, table)
  return [...found.values()]
}

function addChildren(found: Map<number, TableEntry>, table: readonly TableEntry[]): void {
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const entry of table) if (found.has(entry.parent)) found.set(entry.pid, entry)
  }
}

/** What every process carries in its environment that came of the program with this nonce. */
export const markerName = 'DSH_PROCESS'
export const markerOf = (nonce: string): string => `${markerName}=${nonce}.`

/**
 * What was started with `marker` in its environment by a program that began at `since`, the sessions of these, and the
 * children of all. A program's processes are in sessions of their own, so nobody else's is in one with them.
 */
export function findMarked(marker: string, since: number): readonly TableEntry[] {
  const table = processTable().filter(({ startTime }) => Number(startTime) >= since)
  const marked = table.filter(({ pid }) => startedWith(pid, marker))
  const sessions = new Set(marked.map(({ session }) => session))
  // Stands for a session that cannot be seen from here.
  sessions.delete(0)
  const found = new Map(
    [...marked, ...table.filter(({ session }) => sessions.has(session))].map(entry => [entry.pid, entry]),
  )
  addChildren(found, table)
  return [...found.values()]
}

/** To read an environment may wait for its process, so it is read of those alone that can have come from this one. */
function carries({ pid, startTime }: TableEntry, marker: string): boolean {
  return Number(startTime) >= ownStartTime() && startedWith(pid, marker)
}

let startTimeOfSelf: number | undefined

function ownStartTime(): number {
  return (startTimeOfSelf ??= Number(readEntry('self')?.startTime ?? 0))
}

/** Signals each process that is still the one that was found. */
export function signalAll(entries: readonly TableEntry[], signal: NodeJS.Signals, send: SendSignal): void {
  for (const entry of entries) if (isAlive(entry)) trySignal(entry.pid, signal, send)
}

/** False where there is nobody to signal. */
export function trySignal(pid: number, signal: NodeJS.Signals | 0, send: SendSignal): boolean {
  try {
    send(pid, signal)
    return true
  } catch {
    return false
  }
}
