import {
  _default,
  array,
  boolean,
  custom,
  gte,
  int,
  lazy,
  literal,
  lte,
  minLength,
  optional,
  prefault,
  record,
  regex,
  strictObject,
  string,
  union,
  unknown,
} from 'zod/mini'
import type { input, output } from 'zod/mini'
import { isFields, MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const text = () => string().check(minLength(1))
const count = (value: number) => _default(int().check(gte(1)), value)
const delay = (value: number) => _default(int().check(gte(1), lte(MAX_TIMER_DELAY_MS)), value)
const httpUrl = () => string().check(regex(/^https?:\/\//, { error: 'begins with http:// or https://' }))
const pointer = () => string().check(regex(/^(\/|$)/, { error: 'a JSON pointer begins with /' }))

const httpSchema = () => ({
  /** The tool web_fetch, and the provider `http`. */
  fetch: _default(boolean(), true),
  /** Hosts of one's own that may be fetched: `host`, `host:port`, `*.host`. */
  allowHosts: _default(array(text()), []),
  /** Ports of public hosts besides 80, 443, 8080 and 8443. */
  allowPorts: _default(array(int().check(gte(1), lte(65_535))), []),
  /** A file with certificates of authorities, besides those that Node knows. */
  ca: optional(text()),
  /** Tells a proxy names in place of addresses; it is then the proxy's concern what it reaches. */
  proxyResolves: _default(boolean(), false),
  maxUrlLength: count(2048),
  maxResponseBytes: count(5_000_000),
  maxHeaderBytes: count(65_536),
  fetchTimeoutMs: delay(30_000),
  idleTimeoutMs: delay(10_000),
  maxRedirects: _default(int().check(gte(0), lte(20)), 5),
  userAgent: _default(text(), 'Mozilla/5.0 (compatible; dsh)'),
  /** Of one result of web_fetch; what is more goes to the session's artifacts. */
  fetchMaxOutputBytes: _default(int().check(gte(1000)), 40_000),
})

export interface DeepSeekSearchConfig {
  readonly baseURL?: string | undefined
  readonly apiKeyEnv: string
  readonly model: string
  readonly maxTokens: number
  readonly maxUses: number
}

const deepseek: DeepSeekSearchConfig = {
  apiKeyEnv: 'DEEPSEEK_API_KEY',
  model: 'deepseek-flash',
  maxTokens: 4096,
  maxUses: 5,
}

const deepseekSchema = () =>
  strictObject({
    /** The base of the Messages format. Default: `/anthropic` at DEEPSEEK_BASE_URL or at DeepSeek. */
    baseURL: optional(httpUrl()),
    apiKeyEnv: _default(text(), deepseek.apiKeyEnv),
    model: _default(text(), deepseek.model),
    maxTokens: count(deepseek.maxTokens),
    maxUses: count(deepseek.maxUses),
  })

const jsonSchema = () =>
  strictObject({
    /** `{query}`, `{count}` and `{key}` are filled in, escaped. */
    url: httpUrl(),
    method: _default(literal(['GET', 'POST']), 'GET'),
    /** `{key}` is filled in. */
    headers: _default(record(text(), string()), {}),
    /** Sent as JSON; a text that is `{query}`, `{count}` or `{key}` is filled in. */
    body: optional(unknown()),
    /** The variable that holds the key. */
    apiKeyEnv: optional(text()),
    /** JSON pointers: to the list, then inside of each of its items. */
    results: _default(pointer(), '/results'),
    fields: prefault(
      strictObject({
        url: _default(pointer(), '/url'),
        title: _default(pointer(), '/title'),
        snippet: _default(pointer(), '/snippet'),
        publishedAt: optional(pointer()),
      }),
      {},
    ),
    /** To an answer in words. */
    answer: optional(pointer()),
  })

// The parts that most configs leave out are built where one has them: every start pays for the rest.
const searchSchema = () => ({
  /** The tool web_search. */
  search: _default(boolean(), true),
  searchMaxQueries: count(4),
  searchMaxResults: count(8),
  searchTimeoutMs: delay(60_000),
  /** Search by DeepSeek, with the key of its models. */
  deepseek: _default(
    lazy(() => union([literal(false), deepseekSchema()])),
    deepseek,
  ),
  /** Search services that answer in JSON, by the id of the provider. */
  json: _default(
    lazy(() => record(text(), jsonSchema())),
    {},
  ),
})

export const webSchema = () =>
  prefault(
    strictObject({
      searchProvider: optional(text()),
      fetchProvider: optional(text()),
      ...httpSchema(),
      ...searchSchema(),
      /** The environment with keys and proxies; the program gives it. */
      env: _default(custom<Environment>(isFields), {}),
    }),
    {},
  )

export type WebInput = input<ReturnType<typeof webSchema>>
export type WebConfig = output<ReturnType<typeof webSchema>>
export type JsonSearchConfig = output<ReturnType<typeof jsonSchema>>
