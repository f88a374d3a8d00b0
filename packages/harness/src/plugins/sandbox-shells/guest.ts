import { EventEmitter } from 'node:events'
import type { ForeignProcess } from '../subprocess/index.ts'
import type { Pipe } from './pipes.ts'

const killedStatus = 128 + 9

/** A command that a sandbox runs, in the manner of a child process of this program. */
export class Guest extends EventEmitter implements ForeignProcess {
  readonly stdin = null
  readonly stdout: Pipe['stdout']
  readonly stderr: Pipe['stderr']
  readonly #findLeader: () => number | undefined
  #pid: number | undefined
  #hasEnded = false
  #isAsked = false

  /** `findLeader` gives the number, outside, of the leader of its session. */
  constructor({ stdout, stderr }: Pipe, findLeader: () => number | undefined) {
    super()
    this.stdout = stdout
    this.stderr = stderr
    this.#findLeader = findLeader
    for (const stream of [stdout, stderr]) stream.once('close', () => this.#closeIfDone())
  }

  /** Looked for when somebody asks; not known once nothing of its session is there. */
  get pid(): number | undefined {
    this.#pid ??= this.#findLeader()
    return this.#pid
  }

  /** It was told to end. */
  ask(): void {
    this.#isAsked = true
  }

  /** `status` is as a shell has it; one that was told to end and had to be killed is told apart, as with a sandbox of its own. */
  end(status: number): void {
    if (this.#isAsked && status === killedStatus) this.killed()
    else this.#finish(status, null)
  }

  /** With all that was in its sandbox. */
  killed(): void {
    this.#finish(null, 'SIGKILL')
  }

  #finish(exitCode: number | null, signal: NodeJS.Signals | null): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.emit('exit', exitCode, signal)
    this.#closeIfDone()
  }

  #closeIfDone(): void {
    if (this.#hasEnded && this.stdout.closed && this.stderr.closed) this.emit('close')
  }
}
