import type { GenerateOptions } from '../../core/llm/index.ts'
import type { Adaptation } from './adapt.ts'
import { modelFacts } from './config.ts'
import type { ProviderEntry } from './config.ts'
import { HistoryEncoder } from './encoder.ts'
import { wireFailure } from './failure.ts'
import type { ReportNotice } from './notice.ts'
import { quirksOf } from './quirks.ts'
import type { Quirks } from './quirks.ts'

/** One model on one host, as far as it is known by now. */
export interface Route {
  readonly entry: ProviderEntry
  readonly model: string
  readonly quirks: Quirks
  readonly openTools: ReadonlySet<string>
  readonly encoder: HistoryEncoder
}

/** What is known of each model that was asked, and what its refusals taught. */
export class Routes {
  readonly #routes = new Map<string, Route>()
  readonly #report: ReportNotice

  constructor(report: ReportNotice) {
    this.#report = report
  }

  /** Throws UNSUPPORTED_REASONING_EFFORT for an effort that the model is known not to take. */
  of(entry: ProviderEntry, { model, reasoningEffort }: GenerateOptions): Route {
    const facts = modelFacts(entry, model)
    if (reasoningEffort !== undefined && facts.efforts?.includes(reasoningEffort) === false) {
      const words = facts.efforts.join(', ')
      const text = `${entry.id}/${model} takes reasoning effort ${words}, not "${reasoningEffort}"`
      throw wireFailure('UNSUPPORTED_REASONING_EFFORT', text)
    }
    const key = keyOf(entry, model)
    const known = this.#routes.get(key)
    if (known) return known
    const images = facts.images === undefined ? {} : { images: facts.images }
    const quirks = quirksOf(model, entry.quirks, images, facts.quirks)
    const encoder = this.#encoder(entry, model, quirks)
    const route: Route = { entry, model, quirks, openTools: new Set(), encoder }
    this.#routes.set(key, route)
    return route
  }

  /** `route` without the habit that its host refused; forgotten again unless it is learned. */
  adapted(route: Route, found: Adaptation): Route {
    const { entry, model, openTools } = route
    const quirks = { ...route.quirks, ...found.quirks }
    return {
      ...route,
      quirks,
      openTools: found.openTool === undefined ? openTools : new Set([...openTools, found.openTool]),
      encoder: found.quirks === undefined ? route.encoder : this.#encoder(entry, model, quirks),
    }
  }

  /** What the host took in the end counts from now on. */
  learn(route: Route, learned: readonly Adaptation[]): void {
    if (learned.length === 0) return
    const { entry, model } = route
    this.#routes.set(keyOf(entry, model), route)
    for (const { text, maxTokens } of learned) {
      const isForOnce = maxTokens !== undefined
      this.#report({
        code: isForOnce ? 'OPTION_LEFT_OUT' : 'QUIRK_LEARNED',
        provider: entry.id,
        model,
        text: `${entry.id} refused it: ${text}${isForOnce ? '' : ' from now on'}`,
      })
    }
  }

  #encoder(entry: ProviderEntry, model: string, quirks: Quirks): HistoryEncoder {
    return new HistoryEncoder({
      provider: entry.id,
      quirks,
      report: (code, text, message, count) =>
        this.#report({
          code,
          provider: entry.id,
          model,
          text,
          ...(message === undefined ? {} : { messageId: message.id }),
          ...(count === undefined ? {} : { count }),
        }),
    })
  }
}

function keyOf({ id }: ProviderEntry, model: string): string {
  return `${id} ${model}`
}
