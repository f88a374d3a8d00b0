import { IdleWatchdog, LlmError } from '../../core/llm/index.ts'
import type { LlmResolvedModelInfo } from '../../core/llm/index.ts'
import { isFields, isPositive } from '../../kernel/index.ts'
import { modelFacts } from './config.ts'
import type { OpenAIChatConfig, ProviderEntry } from './config.ts'
import { usableKey } from './credential.ts'
import { networkFailure, requestIdOf, responseError, retryAfterMs, wireFailure } from './failure.ts'
import type { ErrorResponse, FailureSubject } from './failure.ts'
import { toModelInfo } from './model-info.ts'
import type { ReadEnv } from '../http/index.ts'
import type { Transport, WireResponse } from './transport.ts'

export interface HostOptions {
  readonly env: ReadEnv
  readonly findKey: NonNullable<OpenAIChatConfig['findKey']>
  readonly send: Transport
  readonly userAgent: string
}

/** A response that is an error, read as far as it is worth reading. */
export type ErrorReply = ErrorResponse & { readonly subject: FailureSubject }

export interface Balance {
  readonly isAvailable: boolean
  readonly amounts: readonly { readonly currency: string; readonly total: string }[]
}

interface Key {
  readonly value: string | undefined
  readonly source: string
}

const errorBodyBytes = 64 * 1024
const errorBodyMs = 5000

/** One provider's host: where it is, with which key, and what it says when it is asked. */
export class Host {
  readonly #entry: ProviderEntry
  readonly #options: HostOptions
  #key: Promise<Key> | undefined

  constructor(entry: ProviderEntry, options: HostOptions) {
    this.#entry = entry
    this.#options = options
  }

  /** Sends one request for an answer. Rejects with MISSING_CREDENTIAL and the like, or a failure of the network. */
  post(body: readonly Uint8Array[], watchdog: IdleWatchdog): Promise<WireResponse> {
    return this.#send('POST', '/chat/completions', watchdog, body)
  }

  async readError(response: WireResponse, watchdog: IdleWatchdog): Promise<ErrorReply> {
    const limitMs = Math.min(errorBodyMs, this.#entry.idleTimeoutMs)
    const body = await readSome(response, { limitMs, signal: watchdog.signal })
    const header = (name: string): string | undefined => response.header(name)
    return {
      status: response.status,
      body,
      requestId: requestIdOf(header),
      retryAfterMs: retryAfterMs(header, Date.now()),
      subject: await this.subject(),
    }
  }

  errorOf(reply: ErrorReply): LlmError {
    return responseError(reply, reply.subject)
  }

  async subject(): Promise<FailureSubject> {
    const { id, facts, config } = this.#entry
    const { value, source } = await this.#findKey()
    const secrets = [value, ...Object.values(config.headers ?? {})]
    return {
      provider: id,
      host: URL.parse(this.#baseURL())?.host ?? '',
      keySource: source,
      keysURL: facts.keysURL,
      topUpURL: facts.topUpURL,
      secrets: secrets.filter(secret => secret !== undefined),
    }
  }

  /** The models the host lists, with what is known of them. Also a check of the key. */
  async listModels(signal?: AbortSignal): Promise<readonly LlmResolvedModelInfo[]> {
    const body = await this.#getJson('/models', signal)
    const rows =
      isFields(body) && Array.isArray(body['data']) ? body['data'] : Array.isArray(body) ? body : undefined
    if (rows === undefined) throw wireFailure('INVALID_RESPONSE', `${this.#entry.id} gave no list of models`)
    const models = new Map<string, LlmResolvedModelInfo>()
    for (const row of rows.filter(isFields)) {
      const { id, name } = row
      if (typeof id !== 'string' || id === '') continue
      const window = [row['context_length'], row['max_model_len'], row['context_window']].find(isPositive)
      const said = {
        ...(typeof name === 'string' && name !== '' ? { name } : {}),
        ...(window === undefined ? {} : { contextWindow: window }),
      }
      models.set(id, toModelInfo(this.#entry.id, id, { ...said, ...modelFacts(this.#entry, id) }))
    }
    return [...models.values()]
  }

  /** What is left on the account, where the host tells. */
  async balance(signal?: AbortSignal): Promise<Balance> {
    const body = await this.#getJson('/user/balance', signal)
    const rows = isFields(body) && Array.isArray(body['balance_infos']) ? body['balance_infos'] : []
    return {
      isAvailable: isFields(body) && body['is_available'] === true,
      amounts: rows
        .filter(isFields)
        .map(row => ({ currency: String(row['currency']), total: String(row['total_balance']) })),
    }
  }

  async #getJson(path: string, signal: AbortSignal | undefined): Promise<unknown> {
    const watchdog = new IdleWatchdog({ limitMs: this.#entry.idleTimeoutMs, signal })
    try {
      const response = await this.#send('GET', path, watchdog)
      if (response.status !== 200) throw this.errorOf(await this.readError(response, watchdog))
      return JSON.parse(await readAll(response, watchdog))
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof LlmError) throw error
      throw wireFailure('INVALID_RESPONSE', `${this.#entry.id} answered ${path} with no JSON`, {
        cause: error,
      })
    }
  }

  async #send(
    method: 'GET' | 'POST',
    path: string,
    watchdog: IdleWatchdog,
    body?: readonly Uint8Array[],
  ): Promise<WireResponse> {
    const { connectTimeoutMs } = this.#entry
    const { signal } = watchdog
    const url = this.#url(path)
    const headers = await this.#headers(method)
    try {
      const sending = this.#options.send({
        url,
        method,
        headers,
        connectTimeoutMs,
        signal,
        ...(body === undefined ? {} : { body }),
      })
      return await watchdog.guard(sending)
    } catch (error) {
      if (error instanceof LlmError) throw error
      throw networkFailure(error, await this.subject())
    }
  }

  async #headers(method: 'GET' | 'POST'): Promise<Record<string, string>> {
    const { id, facts, config } = this.#entry
    const { value, source } = await this.#findKey()
    const key = usableKey({
      provider: id,
      source,
      text: value,
      optional: facts.keyOptional ?? false,
      keysURL: facts.keysURL,
    })
    return {
      'user-agent': this.#options.userAgent,
      'accept-encoding': 'identity',
      accept: method === 'POST' ? 'text/event-stream' : 'application/json',
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...config.headers,
    }
  }

  /** Looked for once for each request, so that a changed key counts at once and a retry has one all the same. */
  #findKey(): Promise<Key> {
    return (this.#key ??= this.#lookUpKey())
  }

  async #lookUpKey(): Promise<Key> {
    const { config, facts, id } = this.#entry
    if (config.apiKey !== undefined) return { value: config.apiKey, source: `apiKey of provider "${id}"` }
    const names = facts.apiKeyEnv ?? []
    for (const name of names) {
      const value = await this.#options.findKey(name)
      if (value !== undefined && value.trim() !== '') return { value, source: name }
    }
    return { value: undefined, source: names[0] ?? `apiKey of provider "${id}"` }
  }

  #baseURL(): string {
    const { config, facts } = this.#entry
    const named = facts.baseURLEnv === undefined ? undefined : this.#options.env(facts.baseURLEnv)?.trim()
    return config.baseURL ?? (named === undefined || named === '' ? facts.baseURL : named)
  }

  #url(path: string): URL {
    const base = this.#baseURL()
    const url = URL.parse(base)
    if (url === null || !['http:', 'https:'].includes(url.protocol)) {
      const shown = base === '' ? 'missing' : `"${base}", which is no http or https URL`
      throw wireFailure('INVALID_REQUEST', `the base URL of provider "${this.#entry.id}" is ${shown}`)
    }
    const root = url.pathname.replace(/\/+$/, '').replace(/\/chat\/completions$/, '')
    url.pathname = `${root}${path}`
    return url
  }
}

async function readAll(response: WireResponse, watchdog: IdleWatchdog): Promise<string> {
  const parts: Uint8Array[] = []
  for (;;) {
    const bytes = await watchdog.guard(response.read())
    if (bytes === undefined) return Buffer.concat(parts).toString()
    parts.push(bytes)
  }
}

/** The beginning of an error's body: what comes within a moment, and not more than a person would read. */
async function readSome(
  response: WireResponse,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<string> {
  const parts: Uint8Array[] = []
  let length = 0
  const moment = new IdleWatchdog({ limitMs, signal })
  try {
    while (length < errorBodyBytes) {
      const bytes = await moment.guard(response.read())
      if (bytes === undefined) break
      parts.push(bytes)
      length += bytes.length
    }
  } catch (error) {
    if (signal.aborted) throw error
  } finally {
    if (length < errorBodyBytes) response.release()
    else response.discard()
  }
  return new TextDecoder().decode(Buffer.concat(parts))
}
