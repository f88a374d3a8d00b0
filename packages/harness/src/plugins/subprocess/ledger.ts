import { mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive, readEntry } from './process-table.ts'
import { findMarked, markerOf, signalAll } from './tree.ts'
import type { SendSignal } from './tree.ts'

/** A program that started processes, told apart from every other one that ever ran on this machine. */
interface Host {
  /** Of the running system: after a restart of it nothing is left. */
  readonly boot: string
  /** The world of process numbers it lived in: in another one the same number is another process. */
  readonly space: string
  readonly pid: number
  readonly startTime: string
  /** Carried by all its processes. */
  readonly nonce: string
}

interface LedgerPlace {
  readonly folder: string
  /** Of this program. */
  readonly nonce: string
  /** The mark that this program itself carries, where another one started it. */
  readonly marked: string | undefined
  readonly send: SendSignal
}

const graceMs = 500
const pollMs = 25
/** What forks while it dies is found by looking again. */
const rounds = 5

/**
 * Notes in a folder which programs started processes and have not ended cleanly: a file for each, empty, whose name says
 * it all, so that none is ever half written.
 */
export class ProcessLedger {
  readonly #place: LedgerPlace
  #file: string | undefined

  constructor(place: LedgerPlace) {
    this.#place = place
  }

  /** Notes this program, before its first process starts. A folder that takes nothing costs the reaping, no more. */
  open(): void {
    const host = ownHost(this.#place.nonce)
    if (host === undefined) return
    const { folder } = this.#place
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const file = join(folder, nameOf(host))
      writeFileSync(file, '', { mode: 0o600 })
      this.#file = file
    } catch {
      this.#file = undefined
    }
  }

  /** Everything this program started has ended. */
  close(): void {
    if (this.#file !== undefined) rmSync(this.#file, { force: true })
    this.#file = undefined
  }

  /**
   * Ends what programs left running that were killed themselves. Touches only processes that carry the mark of a
   * program which provably is dead, and their children.
   */
  async reap(): Promise<void> {
    const { folder, nonce, marked, send } = this.#place
    const own = ownHost(nonce)
    const names = await readdir(folder).catch(() => [])
    await Promise.all(
      names.map(async name => {
        const host = parseName(name)
        if (own === undefined || host === undefined || !isDead(host, own)) return
        // This program is itself a thing that was left running.
        if (marked?.startsWith(`${host.nonce}.`) === true) return
        if (host.boot === own.boot && !(await endAll(host, send))) return
        await rm(join(folder, name), { force: true }).catch(() => {})
      }),
    )
  }
}

/** Whether nothing of `host` is left. */
async function endAll(host: Host, send: SendSignal): Promise<boolean> {
  const find = () => findMarked(markerOf(host.nonce), Number(host.startTime))
  signalAll(find(), 'SIGTERM', send)
  const deadline = performance.now() + graceMs
  while (find().length > 0 && performance.now() < deadline)
    await new Promise(resolve => setTimeout(resolve, pollMs))
  for (let round = 0; round < rounds; round++) {
    const left = find()
    if (left.length === 0) return true
    signalAll(left, 'SIGKILL', send)
    await new Promise(resolve => setTimeout(resolve, pollMs))
  }
  return find().length === 0
}

function isDead({ boot, space, pid, startTime }: Host, own: Host): boolean {
  if (boot !== own.boot) return true
  return space === own.space && !isAlive({ pid, startTime })
}

/** Undefined where the system tells too little to know a process again. */
function ownHost(nonce: string): Host | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const space = readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')
    const entry = readEntry('self')
    return entry && { boot, space, pid: entry.pid, startTime: entry.startTime, nonce }
  } catch {
    return undefined
  }
}

function nameOf({ boot, space, pid, startTime, nonce }: Host): string {
  return [boot, space, pid, startTime, nonce].join('.')
}

function parseName(name: string): Host | undefined {
  const [, boot = '', space = '', pid, startTime = '', nonce = ''] =
    /^([\da-f-]{36})\.(\d+)\.(\d+)\.(\d+)\.([\w-]{12})$/.exec(name) ?? []
  return nonce === '' ? undefined : { boot, space, pid: Number(pid), startTime, nonce }
}
