import { readFileSync, readlinkSync } from 'node:fs'
import { arch as machineArch } from 'node:os'
import { processTable, readEntry } from './process-table.ts'
import type { TableEntry } from './process-table.ts'
import type { Foreground } from './service.ts'

const groupOfTerminalField = 5

/** System calls by which a program waits for what is typed: reading, and watching descriptor 0 and no other. */
const waitingCalls: Readonly<Record<string, { readonly read: number; readonly watch: readonly number[] }>> = {
  x64: { read: 0, watch: [23, 270] },
  arm64: { read: 63, watch: [72] },
}
const terminals = /^\/dev\/(pts\/\d+|tty\w*|console)$/

/** Who has the terminal of the session that `leader` leads. Undefined where the system does not tell. */
export function foregroundOf(leader: number): Foreground | undefined {
  const group = groupOfTerminal(leader)
  if (group === undefined) return undefined
  const inputWait = waitOfGroup(group)
  return {
    processGroupId: group,
    commandLine: readProc(group, 'cmdline') ?? '',
    ...(inputWait !== undefined && { inputWait }),
  }
}

/** Mostly it is the leader who waits, and the others need not be looked for. */
function waitOfGroup(group: number): string | undefined {
  const leader = readEntry(group)
  const wait = leader && inputWaitOf(leader)
  if (wait !== undefined) return wait
  return processTable()
    .filter(entry => entry.group === group)
    .map(inputWaitOf)
    .find(each => each !== undefined)
}

function groupOfTerminal(leader: number): number | undefined {
  const stat = readProc(leader, 'stat')
  const group = Number(stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[groupOfTerminalField])
  return group > 0 ? group : undefined
}

/** The same text for as long as the process has not come out of this very wait. */
function inputWaitOf({ pid, startTime }: TableEntry): string | undefined {
  if (!isWaitingCall(readProc(pid, 'syscall') ?? '') || !readsTerminal(pid)) return undefined
  const switches = /^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readProc(pid, 'status') ?? '')?.[1]
  return switches === undefined ? undefined : `${pid}.${startTime}.${switches}`
}

/** `line` is the number of a system call and its arguments, as /proc tells them. */
export function isWaitingCall(line: string, arch: string = machineArch()): boolean {
  const calls = waitingCalls[arch]
  const [call, first] = line.split(' ').map(Number)
  if (calls === undefined || call === undefined || line === '') return false
  return (call === calls.read && first === 0) || (calls.watch.includes(call) && first === 1)
}

function readsTerminal(pid: number): boolean {
  try {
    return terminals.test(readlinkSync(`/proc/${pid}/fd/0`))
  } catch {
    return false
  }
}

function readProc(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return undefined
  }
}
