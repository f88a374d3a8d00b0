import type { Context } from '@dsh/harness/kernel'
import { changedFiles } from '@dsh/harness/plugins/fs'
import type {} from '@dsh/harness/plugins/hooks'
import type { ChangedPath, ChangeStatus } from '@dsh/harness/plugins/rewind'
import type { SessionEvent, SessionId } from '@dsh/protocol'
import { Tally } from '../tally.ts'
import { Transcript } from '../transcript.ts'
import type { Feed } from './feed.ts'

interface WatchOptions {
  readonly folder: string
  readonly feed: Feed
  /** Tells the person of something that is no part of the session. */
  tell(text: string): void
}

/** What is seen of one session's run: counted, and shown as it happens. */
export class Watch {
  readonly tally = new Tally()
  /** Something was to be asked and nobody could answer. */
  wasDenied = false
  /** What the driver failed at last. */
  failure: unknown
  readonly #transcript: Transcript
  readonly #feed: Feed
  readonly #changes: SessionEvent[] = []
  readonly #edited = new Set<string>()
  /** How a file differs behind the steps of the run, whoever changed it. */
  readonly #differing = new Map<string, ChangeStatus>()

  constructor(ctx: Context, id: SessionId, options: WatchOptions) {
    this.#transcript = new Transcript(options.folder)
    this.#feed = options.feed
    ctx.on('session/event', (session, event) => {
      if (session.id === id) this.#observe(event)
    })
    ctx.on('agent/error', ({ agent, error }) => {
      if (agent.id === id) this.failure = error
    })
    ctx.on('llm/notice', notice => options.tell(notice.text))
    ctx.on('persistence/notice', notice => options.tell(notice.message))
    ctx.on('rewind/notice', notice => options.tell(notice.message))
    ctx.on('hooks/notice', ({ sessionId, code, message }) => {
      // What is not trusted was told when the program began.
      if (sessionId === id && code !== 'HOOKS_NOT_TRUSTED') options.tell(message)
    })
  }

  /** The files that are not as they were when the run began, as far as edits and restore points tell. */
  get changedFiles(): readonly string[] {
    const edited = changedFiles(this.#changes).map(({ path }) => this.#transcript.shown(path))
    return [...edited, ...[...this.#differing.keys()].filter(path => !this.#edited.has(path))]
  }

  #observe(event: SessionEvent): void {
    this.tally.observe(event)
    if (event.type === 'approval/decided' && event.data.outcome === 'unavailable') this.wasDenied = true
    const entry = this.#transcript.next(event)
    if (entry?.kind === 'tool' && entry.changed.length > 0) {
      this.#changes.push(event)
      for (const path of entry.changed) this.#edited.add(path)
    }
    // What differs at the beginning of a turn was changed between two of them.
    if (event.type === 'restore/point' && event.data.step !== undefined)
      for (const change of event.data.changed ?? []) this.#differ(change)
    this.#feed.show(event, entry)
  }

  #differ({ path, status }: ChangedPath): void {
    if (status === 'deleted' && this.#differing.get(path) === 'added') this.#differing.delete(path)
    else if (!this.#differing.has(path)) this.#differing.set(path, status)
  }
}
