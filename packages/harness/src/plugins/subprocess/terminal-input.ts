import { writeSync } from 'node:fs'
import type { IPty } from '@lydell/node-pty'

/** What the package has beyond its types. */
interface OpenTerminal extends IPty {
  readonly fd?: number
  readonly _socket?: { readonly destroyed: boolean }
}

const firstWaitMs = 5
const longestWaitMs = 100

/**
 * Types into a terminal as fast as it takes it. The package's own way of writing waits in a loop, and keeps this whole
 * program from reading what the other side must print first.
 */
export class TerminalInput {
  readonly #pty: OpenTerminal
  #queue: Buffer[] = []
  #timer: NodeJS.Timeout | undefined
  #waitMs = firstWaitMs

  constructor(pty: IPty) {
    this.#pty = pty
  }

  write(text: string): void {
    if (this.#pty.fd === undefined) return this.#pty.write(text)
    this.#queue.push(Buffer.from(text))
    if (this.#timer === undefined) this.#pump()
  }

  resize(columns: number, rows: number): void {
    if (!this.#isGone()) this.#pty.resize(columns, rows)
  }

  /** Forgets what was not taken yet. */
  discard(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#queue = []
  }

  #pump(): void {
    this.#timer = undefined
    const { fd } = this.#pty
    for (let [first] = this.#queue; first !== undefined; [first] = this.#queue) {
      const taken = fd === undefined || this.#isGone() ? undefined : take(fd, first)
      if (taken === undefined) return this.discard()
      if (taken === 0) return this.#pumpLater()
      this.#waitMs = firstWaitMs
      if (taken < first.length) this.#queue[0] = first.subarray(taken)
      else this.#queue.shift()
    }
  }

  #pumpLater(): void {
    this.#timer = setTimeout(() => this.#pump(), this.#waitMs)
    this.#waitMs = Math.min(this.#waitMs * 2, longestWaitMs)
  }

  /** Its number may be that of another file by now. */
  #isGone(): boolean {
    return this.#pty._socket?.destroyed !== false
  }
}

/** How many bytes are taken now; undefined where none ever will be. */
function take(fd: number, bytes: Buffer): number | undefined {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : undefined
  }
}
