import type { Context } from '@dsh/harness/kernel'
import { changedFiles } from '@dsh/harness/plugins/fs'
import type {} from '@dsh/harness/plugins/rewind'
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
  }

  /** The files that are not as they were when the run began, as far as tools tell. */
  get changedFiles(): readonly string[] {
    return changedFiles(this.#changes).map(({ path }) => this.#transcript.shown(path))
  }

  #observe(event: SessionEvent): void {
    this.tally.observe(event)
    if (event.type === 'approval/decided' && event.data.outcome === 'unavailable') this.wasDenied = true
    const entry = this.#transcript.next(event)
    if (entry?.kind === 'tool' && entry.changed.length > 0) this.#changes.push(event)
    this.#feed.show(event, entry)
  }
}
