import type { SessionEvent } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { titleSchema } from './config.ts'
import type { CheckedTitleConfig, TitleInput } from './config.ts'
import { titleEvents } from './declare.ts'
import { SessionTitle } from './service.ts'
import { titleUnit } from './state.ts'

export * from './events.ts'
export { TitleError } from './errors.ts'
export type { TitleErrorCode } from './errors.ts'
export type { ProvidedTitle, TitleProvider, TitleRequest, TitleRoute } from './provider.ts'
export { SessionTitle } from './service.ts'
export { titleFold } from './state.ts'
export type { TitleMessage, TitleSnapshot } from './state.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    sessionTitle: SessionTitle
  }
}

/**
 * What sessions are called. The first prompt gives a title once the model has begun to answer it: nothing waits for
 * that, and it becomes durable with what comes next. With `llm` a model is asked for a better one, beside the session's
 * own requests.
 */
export const title: PluginObject<TitleInput, CheckedTitleConfig> = {
  name: 'title',
  inject: { required: ['sessions'], optional: ['sessionProjections', 'llm'] },
  get Config() {
    return titleSchema()
  },
  apply(ctx, config) {
    for (const definition of titleEvents) ctx.sessions.registerEventType(definition)
    ctx.get('sessionProjections')?.register(titleUnit)
    const titles = new SessionTitle(ctx, config)
    followPrompts(ctx, titles)
    const { llm } = config
    const runtime = ctx.get('llm')
    if (llm === undefined || runtime === undefined) return
    titles.register({
      id: 'llm',
      automatic: llm.automatic,
      generate: async request => (await import('./llm.ts')).generateTitle(runtime, request, llm),
    })
  },
}

/** Tells the service of each answer after a prompt, once. */
function followPrompts(ctx: Context, titles: SessionTitle): void {
  const waiting = new Set<Session>()
  const hear = (session: Session, event: SessionEvent): void => {
    switch (event.type) {
      case 'user/message':
        if (event.data.source.kind === 'user') waiting.add(session)
        return
      case 'assistant/message':
        if (waiting.delete(session)) titles.answered(session)
        return
      case 'turn/end':
        // No answer came: then no model is asked for a title either.
        if (waiting.delete(session)) titles.fallBack(session)
        return
      default:
    }
  }
  ctx.on('session/event', hear, { global: true })
  ctx.on('session/disposed', session => void waiting.delete(session), { global: true })
}
