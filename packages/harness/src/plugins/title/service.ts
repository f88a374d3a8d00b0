import type { SessionEventMap } from '@dsh/protocol'
import type { Session, SessionView } from '../../core/session/index.ts'
import { Service, unlessAborted } from '../../kernel/index.ts'
import type { AsyncDisposer, Context } from '../../kernel/index.ts'
import { TitleError } from './errors.ts'
import { checkProvided, checkProvider } from './provider.ts'
import type { TitleProvider } from './provider.ts'
import { messageAt, promptSeqs, titleFold } from './state.ts'
import type { TitleMessage, TitleSnapshot } from './state.ts'
import { titleOf } from './text.ts'
import type { TitleLimits } from './text.ts'

export interface TitleConfig {
  readonly fallbackMaxWords: number
  readonly fallbackMaxBytes: number
  readonly maxTitleBytes: number
}

/** What one provider is doing for one session. */
interface Work {
  readonly controller: AbortController
  readonly done: Promise<TitleSnapshot>
}

interface Registration {
  readonly provider: TitleProvider
  readonly running: Set<Promise<unknown>>
  readonly unloading: AbortController
}

/**
 * `ctx.sessionTitle`: what a session is called, from its log.
 *
 * The first prompt gives a title at once; a person may give another, and a provider may find a better one. Whatever is
 * asked last wins: what an older question still brings is dropped. A person's title stays until somebody asks for a new
 * one.
 */
export class SessionTitle extends Service {
  private readonly own: Context
  private readonly config: TitleConfig
  private readonly registered: { current?: Registration | undefined } = {}
  private readonly works = new WeakMap<Session, Work>()

  constructor(ctx: Context, config: TitleConfig) {
    super(ctx, 'sessionTitle')
    this.own = ctx
    this.config = config
  }

  get(session: SessionView): TitleSnapshot | undefined {
    return session.fold(titleFold) ?? undefined
  }

  /** A title that a person wrote, as it would be kept. Throws INVALID_TITLE where nothing is left of it. */
  check(title: string): string {
    const text = titleOf(title, { maxBytes: this.config.maxTitleBytes })
    if (text !== '') return text
    throw new TitleError('INVALID_TITLE', `the title ${JSON.stringify(title)} has no letters to show`)
  }

  /** Gives the session the title that a person chose. Throws INVALID_TITLE, as `check` does. */
  rename(session: Session, title: string): TitleSnapshot {
    const text = this.check(title)
    this.supersede(session)
    return this.put(session, { title: text, messageSeqs: [], source: { kind: 'user' } })
  }

  /**
   * Gives a session without a title the one of its first prompt, and then asks the provider, also where a person chose
   * the title. Undefined where there is nothing to make one of. Rejects with what the provider fails at,
   * TITLE_SUPERSEDED or the signal's reason; the first title stays then.
   */
  async refresh(session: Session, signal?: AbortSignal): Promise<TitleSnapshot | undefined> {
    signal?.throwIfAborted()
    this.assertWritable(session)
    this.fallBack(session)
    const messages = session.fold(promptSeqs).map(seq => messageAt(session, seq))
    const { current } = this.registered
    if (current === undefined || messages.length === 0) return this.get(session)
    return this.ask(session, messages, signal)
  }

  /** Asks `provider` from now on, as long as the caller is there. Throws DUPLICATE_PROVIDER or INVALID_PROVIDER. */
  register(provider: TitleProvider): AsyncDisposer {
    const { registered } = this
    checkProvider(provider)
    if (registered.current !== undefined) {
      const { id } = registered.current.provider
      throw new TitleError('DUPLICATE_PROVIDER', `title provider "${id}" is there already`)
    }
    const registration = { provider, running: new Set<Promise<unknown>>(), unloading: new AbortController() }
    return this.ctx.effect((): AsyncDisposer => {
      registered.current = registration
      return async () => {
        registered.current = undefined
        registration.unloading.abort(new TitleError('TITLE_SUPERSEDED', 'the title provider is gone'))
        await Promise.allSettled(registration.running)
      }
    }, `title provider ${provider.id}`)
  }

  /** A person has said something, and the model has answered: the time for what needs nobody to wait. */
  answered(session: Session): void {
    this.fallBack(session)
    const { current } = this.registered
    if (current === undefined || this.get(session)?.source.kind === 'user') return
    const seqs = session.fold(promptSeqs)
    const { automatic } = current.provider
    const isFresh = session.header.parentSession === undefined && session.firstLiveSeq === 0
    if (seqs.length === 0 || (automatic === 'first-prompt' && !(isFresh && seqs.length === 1))) return
    const messages = seqs.map(seq => messageAt(session, seq))
    this.ask(session, messages, undefined).catch((error: unknown) => {
      if (!(error instanceof TitleError && error.code === 'TITLE_SUPERSEDED'))
        this.own.fiber.report(error, 'session title')
    })
  }

  /** The title of the first prompt that has one, where the session has no title yet. */
  fallBack(session: Session): void {
    if (this.get(session) !== undefined || !this.isWritable(session)) return
    const { fallbackMaxBytes: maxBytes, fallbackMaxWords: maxWords } = this.config
    const limits: TitleLimits = { maxBytes, maxWords }
    for (const seq of session.fold(promptSeqs)) {
      const title = titleOf(messageAt(session, seq).text, limits)
      if (title === '') continue
      this.put(session, { title, messageSeqs: [seq], source: { kind: 'fallback' } })
      return
    }
  }

  private ask(
    session: Session,
    messages: readonly TitleMessage[],
    signal: AbortSignal | undefined,
  ): Promise<TitleSnapshot> {
    const { current } = this.registered
    if (current === undefined) throw new TitleError('INVALID_PROVIDER', 'no title provider is there')
    this.supersede(session)
    const controller = new AbortController()
    const signals = [controller.signal, current.unloading.signal, ...(signal === undefined ? [] : [signal])]
    const done = this.generate(session, messages, current.provider, AbortSignal.any(signals))
    const work = { controller, done }
    this.works.set(session, work)
    const running = done.finally(() => {
      current.running.delete(running)
      if (this.works.get(session) === work) this.works.delete(session)
    })
    running.catch(() => undefined)
    current.running.add(running)
    return done
  }

  /** The signal is the fence: once it is aborted nothing is written, whatever the provider does. */
  private async generate(
    session: Session,
    messages: readonly TitleMessage[],
    provider: TitleProvider,
    signal: AbortSignal,
  ): Promise<TitleSnapshot> {
    const config = session.requestHeader()?.config
    const route = config === undefined ? undefined : { provider: config.provider, model: config.model }
    const generating = (async () => provider.generate({ session, messages, route, signal }))()
    const given = await unlessAborted(generating, signal)
    signal.throwIfAborted()
    const { title, messageSeqs, model } = checkProvided(given, provider, messages)
    const text = titleOf(title, { maxBytes: this.config.maxTitleBytes })
    if (text === '') throw new TitleError('INVALID_TITLE', `title provider "${provider.id}" gave no title`)
    const source = {
      kind: 'provider',
      provider: provider.id,
      ...(model === undefined ? {} : { model }),
    } as const
    return this.put(session, { title: text, messageSeqs, source })
  }

  private supersede(session: Session): void {
    this.works
      .get(session)
      ?.controller.abort(
        new TitleError('TITLE_SUPERSEDED', `something newer gives session "${session.id}" its title`),
      )
    this.works.delete(session)
  }

  private put(session: Session, data: SessionEventMap['session/title']): TitleSnapshot {
    this.assertWritable(session)
    const { seq, time, data: logged } = session.append('session/title', data)
    return { ...logged, eventSeq: seq, updatedAt: time }
  }

  private isWritable(session: Session): boolean {
    return session.readOnly === undefined && this.own.sessions.get(session.id) === session
  }

  private assertWritable(session: Session): void {
    if (this.isWritable(session)) return
    const why = session.readOnly ?? 'it is not live here'
    throw new TitleError('SESSION_NOT_WRITABLE', `session "${session.id}" takes no title: ${why}`)
  }
}
