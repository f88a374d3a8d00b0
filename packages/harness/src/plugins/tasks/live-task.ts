import { createHash } from 'node:crypto'
import type { CallId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { readThrown } from '../../core/tools/index.ts'
import { endsWithin } from '../../kernel/index.ts'
import type { TaskEnding } from './events.ts'
import type { Task, TaskCursor, TaskText, TaskWork } from './service.ts'

/** How long a task that was told to end may take before it is given up. */
const killPatienceMs = 10_000

export interface TaskFacts {
  readonly owner: Agent
  readonly id: string
  readonly kind: string
  readonly label: string
  readonly callId: CallId | undefined
}

interface End {
  readonly status: TaskEnding
  readonly detail?: string
}

/** A task of this process, from its start to the end that the log tells, once. */
export class LiveTask {
  readonly id: string
  readonly owner: Agent
  /** Resolves when the log has the end. */
  readonly ended: Promise<void>
  /** How many calls of the model look at it right now. */
  attending = 0
  readonly #facts: TaskFacts
  readonly #startedAt = Date.now()
  readonly #work: TaskWork
  readonly #settle: () => void
  readonly #report: (error: unknown) => void
  #killed: { readonly reason: string | undefined } | undefined
  #end: Omit<Task, 'id' | 'kind' | 'label' | 'callId' | 'startedAt'> | undefined
  /** How it ended, while its output is put away. */
  #ending: End | undefined
  /** How far the model has read. */
  #cursor: TaskCursor | undefined

  constructor(facts: TaskFacts, work: TaskWork, report: (error: unknown) => void) {
    this.id = facts.id
    this.owner = facts.owner
    this.#facts = facts
    this.#work = work
    this.#report = report
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#settle = resolve
    const { id, kind, label, callId } = facts
    facts.owner.session.append('task/start', { id, kind, label, ...(callId !== undefined && { callId }) })
    void work.done.then(
      end => this.#finish(end),
      (error: unknown) => this.#finish({ status: 'failed', detail: readThrown(error).message }),
    )
  }

  get isRunning(): boolean {
    return this.#end === undefined
  }

  snapshot(): Task {
    const { id, kind, label, callId } = this.#facts
    const bytes = this.#work.output?.totalBytes
    const now = this.#end ?? { status: 'running', ...(bytes !== undefined && { output: { bytes } }) }
    return { id, kind, label, ...(callId !== undefined && { callId }), startedAt: this.#startedAt, ...now }
  }

  read(cursor: TaskCursor | undefined): TaskText {
    return this.#work.output?.read(cursor) ?? { text: '', cursor: [], omittedBytes: 0 }
  }

  readNew(): string {
    const { text, cursor } = this.read(this.#cursor)
    this.#cursor = cursor
    return text
  }

  /** Ends the work and waits for that. The first reason counts. */
  async kill(reason: string | undefined): Promise<void> {
    if (this.#ending !== undefined) return this.ended
    this.#killed ??= { reason }
    this.#work.kill()
    if (!(await endsWithin(this.ended, killPatienceMs)))
      await this.#finish({ status: 'failed', detail: 'it could not be ended' })
  }

  /** Logs the end while the session can still be written, and gives what must be waited for. */
  lose(): Promise<void> {
    const output = this.#ending === undefined ? this.#printed() : undefined
    const sha256 = output && createHash('sha256').update(output).digest('hex')
    this.#ending ??= { status: 'lost' }
    this.#log(sha256)
    this.#work.kill()
    const kept = output && this.owner.session.artifacts.put(output, 'text/plain')
    return Promise.allSettled([kept, endsWithin(this.#work.done, killPatienceMs)]).then(() => {})
  }

  async #finish(end: End): Promise<void> {
    if (this.#ending !== undefined) return
    this.#ending = this.#judged(end)
    const output = this.#printed()
    // A store that is full or gone costs the output, not the end.
    const kept =
      output && (await this.owner.session.artifacts.put(output, 'text/plain').catch(() => undefined))
    this.#log(kept?.sha256)
  }

  /** Whatever ends after it was told to end was ended by that. */
  #judged(end: End): End {
    if (this.#killed === undefined) return end
    const { reason } = this.#killed
    return reason === undefined ? { ...end, status: 'killed' } : { status: 'killed', detail: reason }
  }

  /** Once, whoever comes first. */
  #log(artifact: string | undefined): void {
    if (this.#end !== undefined || this.#ending === undefined) return
    const bytes = this.#work.output?.totalBytes
    const output = bytes === undefined ? undefined : { bytes, ...(artifact !== undefined && { artifact }) }
    const facts = { ...this.#ending, ...(output !== undefined && { output }) }
    this.#end = { ...facts, endedAt: Date.now() }
    try {
      this.owner.session.append('task/end', { id: this.id, ...facts })
    } catch (error) {
      this.#report(error)
    }
    this.#settle()
  }

  /** Everything that was kept of the output; undefined where there is nothing. */
  #printed(): Buffer | undefined {
    const { output } = this.#work
    if (output === undefined || output.totalBytes === 0) return undefined
    const { text } = output.read(undefined)
    return Buffer.from(text)
  }
}
