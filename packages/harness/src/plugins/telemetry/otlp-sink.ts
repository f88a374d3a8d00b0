import { createHash } from 'node:crypto'
import { messageOf } from '../../kernel/index.ts'
import type { SpanDescription, SpanSink, SpanValue } from './span.ts'

export interface OtlpOptions {
  /** `/v1/traces` is added where it has no path. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  /** Spans that wait longest go first; of more than `queueSize` the newest are lost. */
  readonly queueSize: number
  readonly batchSize: number
  readonly delayMs: number
  readonly timeoutMs: number
  /** A batch, or spans, were lost. */
  readonly onLoss: (reason: string) => void
}

/** Sends spans to a collector as OTLP over HTTP, in JSON. A batch is sent once, whatever becomes of it. */
export class OtlpSink implements SpanSink {
  readonly #options: OtlpOptions
  readonly #url: URL
  #waiting: SpanDescription[] = []
  #lost = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> = Promise.resolve()
  readonly #stopping = new AbortController()

  constructor(options: OtlpOptions) {
    this.#options = options
    this.#url = new URL(options.endpoint)
    if (this.#url.pathname === '/') this.#url.pathname = '/v1/traces'
  }

  emit(span: SpanDescription): void {
    const { queueSize, batchSize, delayMs } = this.#options
    if (this.#waiting.length >= queueSize) {
      this.#lost += 1
      return
    }
    this.#waiting.push(span)
    if (this.#waiting.length >= batchSize) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), delayMs).unref()
  }

  async shutDown(ms: number): Promise<void> {
    this.#send()
    const timer = setTimeout(() => this.#stopping.abort(new Error(`the program ended after ${ms} ms`)), ms)
    await this.#sending
    clearTimeout(timer)
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending = this.#sending.then(() => this.#drain())
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#options.batchSize)
      try {
        this.#stopping.signal.throwIfAborted()
        await this.#post(batch)
      } catch (error) {
        this.#options.onLoss(`${batch.length} spans are lost: ${messageOf(error)}`)
      }
    }
    if (this.#lost > 0) this.#options.onLoss(`${this.#lost} spans are lost: the collector is too slow`)
    this.#lost = 0
  }

  async #post(batch: readonly SpanDescription[]): Promise<void> {
    const { headers, serviceName, timeoutMs } = this.#options
    const response = await fetch(this.#url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(requestOf(batch, serviceName)),
      redirect: 'error',
      signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(timeoutMs)]),
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the collector answered ${response.status}`)
  }
}

function requestOf(spans: readonly SpanDescription[], serviceName: string): object {
  const resource = { attributes: attributesOf({ 'service.name': serviceName }) }
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'dsh' }, spans: spans.map(spanOf) }] }] }
}

function spanOf({
  id,
  rootId,
  parent,
  name,
  kind,
  startTime,
  endTime,
  attributes,
  error,
}: SpanDescription): object {
  return {
    traceId: hash(`trace ${rootId}`, 32),
    spanId: hash(id, 16),
    ...(parent === undefined ? {} : { parentSpanId: hash(parent.id, 16) }),
    name,
    kind: kind === 'client' ? 3 : 1,
    startTimeUnixNano: nanoseconds(startTime),
    endTimeUnixNano: nanoseconds(endTime),
    attributes: attributesOf(attributes),
    status: error === undefined ? {} : { code: 2, message: error },
  }
}

function attributesOf(attributes: SpanDescription['attributes']): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }))
}

function valueOf(value: SpanValue): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  return { arrayValue: { values: value.map(valueOf) } }
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.max(0, ms)) * 1_000_000n)
}

function hash(text: string, digits: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digits)
}
