import { checkKey } from '../http/index.ts'
import { askJson } from './ask-json.ts'
import type { ServiceGround } from './ask-json.ts'
import type { JsonSearchConfig } from './config.ts'
import { WebError } from './errors.ts'
import { atPointer } from './json-pointer.ts'
import type { WebSearchRequest, WebSearchResult, WebSource } from './service.ts'

export interface JsonSearch {
  readonly id: string
  readonly config: JsonSearchConfig
  /** As the config's variable holds it now. */
  readonly key: string | undefined
}

const defaultCount = 10

/** Asks a search service that answers in JSON, and reads the answer as the config says. */
export async function searchJson(
  { id, config, key: text }: JsonSearch,
  { query, maxResults = defaultCount }: WebSearchRequest,
  { ground, signal }: { readonly ground: ServiceGround; readonly signal: AbortSignal },
): Promise<WebSearchResult> {
  const key = usableKey(id, config, text)
  const values = { query, count: String(maxResults), key }
  const url = URL.parse(filled(config.url, values, encodeURIComponent))
  if (url === null) throw new WebError('WEB_INVALID_URL', `the url of search provider ${id} is no URL`)
  const headers = Object.entries(config.headers).map(([name, value]) => [
    name.toLowerCase(),
    filled(value, { key }, plain),
  ])
  const body =
    config.body === undefined ? undefined : filledBody(config.body, { query, count: maxResults, key })
  const { method } = config
  const answer = await askJson(
    { url, method, headers: Object.fromEntries(headers), ...(body !== undefined && { body }), signal },
    ground,
    [key, encodeURIComponent(key)],
  )
  const list = atPointer(answer, config.results)
  if (!Array.isArray(list)) {
    const problem = `the answer of search provider ${id} has no list at ${config.results || 'its root'}`
    throw new WebError('WEB_PROVIDER_ERROR', problem)
  }
  const words = config.answer === undefined ? undefined : textAt(answer, config.answer)
  const sources = list.flatMap(item => toSource(item, config.fields))
  return { ...(words !== undefined && { content: words }), sources, truncated: false }
}

function usableKey(id: string, { apiKeyEnv }: JsonSearchConfig, text: string | undefined): string {
  if (apiKeyEnv === undefined) return ''
  const { key, problem } = checkKey(text ?? '')
  if (key !== undefined) return key
  const message = `no usable key for search provider ${id}: set ${apiKeyEnv} (${problem})`
  throw new WebError('WEB_PROVIDER_CREDENTIAL_MISSING', message)
}

const plain = (text: string): string => text

/** Each place is filled once: what a value holds is never a place again. */
function filled(
  template: string,
  values: Readonly<Record<string, string>>,
  escape: (text: string) => string,
): string {
  return template.replace(/\{(query|count|key)\}/g, (place, name: string) => {
    const value = values[name]
    return value === undefined ? place : escape(value)
  })
}

function filledBody(template: unknown, values: Readonly<Record<string, string | number>>): unknown {
  if (typeof template === 'string') {
    const [, name = ''] = /^\{(query|count|key)\}$/.exec(template) ?? []
    return values[name] ?? template
  }
  if (Array.isArray(template)) return template.map(item => filledBody(item, values))
  if (typeof template !== 'object' || template === null) return template
  return Object.fromEntries(Object.entries(template).map(([name, item]) => [name, filledBody(item, values)]))
}

/** An item without a web address leads nowhere and is left out. */
function toSource(item: unknown, fields: JsonSearchConfig['fields']): readonly WebSource[] {
  const url = URL.parse(textAt(item, fields.url) ?? '')
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return []
  const title = textAt(item, fields.title)
  const snippet = textAt(item, fields.snippet)
  const publishedAt = fields.publishedAt === undefined ? undefined : textAt(item, fields.publishedAt)
  return [
    {
      url: url.href,
      ...(title !== undefined && { title }),
      ...(snippet !== undefined && { snippet }),
      ...(publishedAt !== undefined && { publishedAt }),
    },
  ]
}

/** The first text of a list counts for the list: some services give highlights. */
function textAt(value: unknown, pointer: string): string | undefined {
  const found = atPointer(value, pointer)
  const text: unknown = Array.isArray(found) ? found[0] : found
  if (typeof text === 'number') return String(text)
  return typeof text === 'string' && text.trim() !== '' ? text.trim() : undefined
}
