import type { LiveProcess, ProcessExit, SubprocessHandle } from '../subprocess/index.ts'
import type { Guest } from './guest.ts'
import { numberInside } from './inside.ts'

interface GuestHost {
  readonly graceMs: number
  /** Whether anything is there that was not when the command began. */
  readonly hasLeft: () => boolean
  /** Ends the sandbox with all that is in it. */
  readonly giveUp: () => void
}

/** How long dying may take after SIGKILL. */
const killPatienceMs = 1200

/** A command in a sandbox that others share: it is ended alone, and with the sandbox where that does not do. */
export class GuestHandle implements SubprocessHandle {
  readonly stdin = undefined
  readonly stdout = undefined
  readonly stderr = undefined
  readonly collected: SubprocessHandle['collected']
  readonly done: Promise<ProcessExit>
  readonly #adopted: SubprocessHandle
  readonly #guest: Guest
  readonly #host: GuestHost
  #isEnding = false

  constructor(adopted: SubprocessHandle, guest: Guest, host: GuestHost) {
    this.#adopted = adopted
    this.#guest = guest
    this.#host = host
    this.collected = adopted.collected
    this.done = adopted.done
  }

  get pid(): number {
    return this.#adopted.pid
  }

  get hasExited(): boolean {
    return this.#adopted.hasExited
  }

  terminate(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#guest.ask()
    this.#adopted.terminate()
    const limit = AbortSignal.timeout(this.#host.graceMs + killPatienceMs)
    void this.#adopted.waitForExit(limit).then(isGone => isGone || this.#host.giveUp())
  }

  waitForExit(signal?: AbortSignal): Promise<boolean> {
    return this.#adopted.waitForExit(signal)
  }

  /** By their numbers within the sandbox: the next command finds them by these. */
  survivors(): readonly LiveProcess[] {
    return this.#adopted.survivors().map(each => ({ ...each, pid: numberInside(each.pid) }))
  }

  hasGroup(): boolean {
    return this.#host.hasLeft()
  }
}
