import {
  _default,
  boolean,
  gte,
  int,
  lte,
  minLength,
  optional,
  prefault,
  record,
  refine,
  strictObject,
  string,
} from 'zod/mini'
import type { input, output } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject, Waterfall } from '../../kernel/index.ts'
import { LiveSpans } from './live.ts'
import type { SpanDescription, SpanSink } from './span.ts'

export { deriveSpans, SpanDeriver } from './derive.ts'
export type { ParentSpan, SpanDescription, SpanSink, SpanValue } from './span.ts'

declare module '../../kernel/index.ts' {
  interface Events {
    /** Around each span before it leaves: gives what may leave of it, or undefined. One that throws keeps it back. */
    'telemetry/span': Waterfall<[span: SpanDescription], SpanDescription | undefined>
  }
}

const configSchema = () =>
  prefault(
    strictObject({
      /** A collector that takes OTLP over HTTP; absent = the OpenTelemetry SDK of the process, if it has one. */
      endpoint: optional(string().check(refine(isHttp, { error: 'it is no http or https address' }))),
      headers: _default(record(string(), string()), {}),
      serviceName: _default(string().check(minLength(1)), 'dsh'),
      shutdownTimeoutMs: _default(int().check(gte(1), lte(MAX_TIMER_DELAY_MS)), 3000),
      /** Nothing is derived and nothing leaves, whatever else is said here. */
      disabled: _default(boolean(), false),
    }),
    {},
  )

type Config = output<ReturnType<typeof configSchema>>

const otlpLimits = { queueSize: 2048, batchSize: 512, delayMs: 5000, timeoutMs: 10_000 }

/**
 * OpenTelemetry spans of turns, requests and tools, with the names of the GenAI conventions. They are derived from the
 * log and hold nothing that a person, a model or a tool wrote. Off unless a composition names the plugin.
 */
export const telemetry: PluginObject<input<ReturnType<typeof configSchema>>, Config> = {
  name: 'telemetry',
  inject: ['sessions'],
  get Config() {
    return configSchema()
  },
  apply(ctx, config) {
    if (config.disabled) return
    const spans = new LiveSpans(ctx, () => openSink(ctx, config))
    ctx.effect(() => () => spans.shutDown(config.shutdownTimeoutMs), 'unsent spans')
    ctx.on('session/event', (session, event) => spans.hear(session, event), { global: true })
  },
}

async function openSink(ctx: Context, { endpoint, headers, serviceName }: Config): Promise<SpanSink> {
  if (endpoint === undefined) return new (await import('./api-sink.ts')).ApiSink()
  const { OtlpSink } = await import('./otlp-sink.ts')
  const onLoss = (reason: string): void => ctx.fiber.report(new Error(reason), 'telemetry')
  return new OtlpSink({ endpoint, headers, serviceName, ...otlpLimits, onLoss })
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}
