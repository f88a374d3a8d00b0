import { spawnSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { DatabaseSync } from 'node:sqlite'
import { isGone } from '../../kernel/index.ts'
import { PersistenceError } from './errors.ts'
import { isProvablyDead } from './processes.ts'
import type { Processes, ProcessIdentity, ProcessState } from './processes.ts'

/** The processes of this machine. */
export function createLocalProcesses(): Processes {
  let identity: ProcessIdentity | undefined
  const self = (): ProcessIdentity => (identity ??= ownIdentity())
  return { self, isDead: other => isProvablyDead(other, self(), look) }
}

function ownIdentity(): ProcessIdentity {
  const state = look(process.pid)
  return {
    pid: process.pid,
    start: typeof state === 'string' ? '' : state.start,
    boot: textOf('/proc/sys/kernel/random/boot_id'),
    host: [hostname(), textOf('/etc/machine-id')].join(' ').trim(),
    space: pidSpace(),
  }
}

function look(pid: number): ProcessState {
  if (isGone(pid)) return 'gone'
  if (process.platform === 'linux') return lookInProc(pid)
  if (process.platform === 'darwin') return lookWithPs(pid)
  return 'unknown'
}

function lookInProc(pid: number): ProcessState {
  const stat = textOf(`/proc/${pid}/stat`)
  if (stat === '') return 'unknown'
  // The name in parentheses may itself hold spaces and parentheses.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z' || state === 'X') return 'gone'
  return { start: fields[18] ?? '' }
}

function lookWithPs(pid: number): ProcessState {
  const env = { PATH: '/bin:/usr/bin', LC_ALL: 'C', TZ: 'UTC' }
  const { status, stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env })
  return status === 0 ? { start: stdout.trim() } : 'unknown'
}

function pidSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

type Sqlite = { readonly DatabaseSync: typeof DatabaseSync }

/** SQLite is loaded with the first database and not before; older Nodes would say then that it is experimental. */
export function loadSqlite(): Sqlite {
  const { emitWarning } = process
  const isExpected = (warning: unknown): boolean => String(warning).startsWith('SQLite is an experimental')
  process.emitWarning = ((warning: unknown, ...rest: readonly unknown[]): void => {
    if (!isExpected(warning)) Reflect.apply(emitWarning, process, [warning, ...rest])
  }) as typeof emitWarning
  try {
    const sqlite: Sqlite | undefined = process.getBuiltinModule('node:sqlite')
    if (sqlite === undefined) throw new PersistenceError('STORE_FAILED', 'this Node has no SQLite')
    return sqlite
  } finally {
    process.emitWarning = emitWarning
  }
}
