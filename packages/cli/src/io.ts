import type { Readable, Writable } from 'node:stream'

export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** All that a command may touch of its process; `main` makes it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute. */
  readonly cwd: string
  /** `$DSH_HOME` or `~/.dsh`; absolute, not necessarily there. */
  readonly home: string
  readonly stdin: Input
  readonly out: Output
  readonly err: Output
  /** What runs dsh, and as whom; there are no numbers of users on Windows. */
  readonly runtime: { readonly node: string; readonly path: string; readonly uid: number | undefined }
  /** What to type to run dsh. */
  readonly command: string
  /** Calls `listener` for each signal instead of dying of it, until the given function is called. */
  onSignal(listener: (signal: StopSignal) => void): () => void
  /** Asks `listener` about each error that nobody caught; where it gives true the process goes on. One at a time. */
  onUncaught(listener: (error: unknown) => boolean): void
  /** Ends the process at once. */
  exit(code: number): never
}

type Input = Readable & { readonly isTTY?: boolean }

/**
 * Text on its way out: what is written in one turn of the event loop leaves in one system call.
 *
 * A reader that went away is no error here; `failure` tells.
 */
export class Output {
  readonly isTerminal: boolean
  readonly #stream: Writable
  #pending = ''
  #scheduled = false
  #failure: Error | undefined
  #onFailure: () => void = () => {}

  constructor(stream: Writable & { readonly isTTY?: boolean }) {
    this.#stream = stream
    this.isTerminal = stream.isTTY === true
    stream.on('error', (error: Error) => this.#fail(error))
  }

  /** Why nothing written any more arrives. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Calls `listener` as soon as it is known that nobody reads any more. One at a time. */
  onFailure(listener: () => void): void {
    this.#onFailure = listener
  }

  write(text: string): void {
    this.#pending += text
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#send())
  }

  line(text: string): void {
    this.write(`${text}\n`)
  }

  /** Resolves when everything written has left or failed. */
  flush(): Promise<void> {
    return new Promise(resolve => this.#send(resolve))
  }

  #send(done: () => void = () => {}): void {
    const text = this.#pending
    this.#pending = ''
    this.#scheduled = false
    if (this.#failure !== undefined) return done()
    this.#stream.write(text, error => {
      if (error) this.#fail(error)
      done()
    })
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#onFailure()
  }
}
