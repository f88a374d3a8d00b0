import { readdirSync, readFileSync } from 'node:fs'
import type { LiveProcess, ProcessIdentity } from './service.ts'

export interface TableEntry extends LiveProcess {
  readonly parent: number
  readonly group: number
  readonly session: number
}

const proc = '/proc'
const startTimeField = 19

/**
 * All processes that run, zombies left out. Empty where the system shows no /proc; there only process groups are
 * reached.
 *
 * Reads at once and not in steps: what is read in steps can be outrun by a process that forks.
 */
export function processTable(): readonly TableEntry[] {
  let names: readonly string[]
  try {
    names = readdirSync(proc)
  } catch {
    return []
  }
  return names.flatMap(name => (/^\d+$/.test(name) ? (readEntry(Number(name)) ?? []) : []))
}

/** True while exactly this process runs. */
export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  return readEntry(pid)?.startTime === startTime
}

/** Whether the process was started with `variable` in its environment; false where that cannot be seen. */
export function startedWith(pid: number, variable: string): boolean {
  try {
    const environment = `\0${readFileSync(`${proc}/${pid}/environ`, 'latin1')}`
    return environment.includes(`\0${variable}`)
  } catch {
    return false
  }
}

export function readEntry(pid: number | 'self'): TableEntry | undefined {
  try {
    return parseStat(readFileSync(`${proc}/${pid}/stat`, 'latin1'))
  } catch {
    return undefined
  }
}

/** A line of /proc/<pid>/stat; undefined for what is dead. The name may hold blanks and parentheses itself. */
export function parseStat(line: string): TableEntry | undefined {
  const open = line.indexOf('(')
  const close = line.lastIndexOf(')')
  const [state = '', parent, group, session, ...rest] = line.slice(close + 2).split(' ')
  const startTime = rest[startTimeField - 4]
  if (open === -1 || startTime === undefined || 'ZX'.includes(state)) return undefined
  return {
    pid: Number(line.slice(0, open)),
    startTime,
    command: Buffer.from(line.slice(open + 1, close), 'latin1').toString('utf8'),
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
  }
}
