import type { TokenUsage } from '@dsh/protocol'
import { checkKey } from '../http/index.ts'
import type { Session } from '../../core/session/index.ts'
import { isCount, isFields, messageOf } from '../../kernel/index.ts'
import { askJson } from './ask-json.ts'
import type { ServiceGround } from './ask-json.ts'
import type { DeepSeekSearchConfig } from './config.ts'
import { WebError } from './errors.ts'
import type { WebSearchRequest, WebSearchResult, WebSource } from './service.ts'

export interface DeepSeekSearch {
  readonly config: DeepSeekSearchConfig
  readonly baseURL: string
  /** As the config's variable holds it now. */
  readonly key: string | undefined
}

const instruction = 'Search the web for the following and sum up what you find, naming the sources:'

/** Has a model of DeepSeek search, over the Messages format. The request is in the session's log before it is sent. */
export async function searchDeepSeek(
  { config, baseURL, key: text }: DeepSeekSearch,
  { query, session }: WebSearchRequest,
  { ground, signal }: { readonly ground: ServiceGround; readonly signal: AbortSignal },
): Promise<WebSearchResult> {
  const { apiKeyEnv, model, maxTokens, maxUses } = config
  const { key, problem } = checkKey(text ?? '')
  if (key === undefined) {
    const message = `no usable key for search by DeepSeek: set ${apiKeyEnv} (${problem})`
    throw new WebError('WEB_PROVIDER_CREDENTIAL_MISSING', message)
  }
  const url = new URL(`${baseURL.replace(/\/+$/, '')}/v1/messages`)
  const told = session?.append('web/deepseek-search-llm-request', {
    url: url.href,
    model,
    query,
    maxTokens,
    maxUses,
  })
  const body = {
    model,
    max_tokens: maxTokens,
    thinking: { type: 'disabled' },
    messages: [{ role: 'user', content: `${instruction}\n\n${query}` }],
    tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: maxUses }],
  }
  const headers = { 'x-api-key': key, 'anthropic-version': '2023-06-01' }
  let answer: unknown
  try {
    answer = await askJson({ url, method: 'POST', headers, body, signal }, ground, [key])
    const result = readAnswer(answer)
    report(session, told?.seq, { answer })
    return result
  } catch (error) {
    report(session, told?.seq, { answer, problem: signal.aborted ? 'aborted' : messageOf(error) })
    throw error
  }
}

function report(
  session: Session | undefined,
  requestSeq: number | undefined,
  { answer, problem }: { readonly answer: unknown; readonly problem?: string },
): void {
  if (session === undefined || requestSeq === undefined || session.readOnly !== undefined) return
  const usage = usageOf(answer)
  session.append('web/deepseek-search-llm-result', {
    requestSeq,
    ...(problem !== undefined && { problem }),
    ...(usage !== undefined && { usage }),
  })
}

function usageOf(answer: unknown): TokenUsage | undefined {
  if (!isFields(answer) || !isFields(answer['usage'])) return undefined
  const { input_tokens, output_tokens, cache_read_input_tokens } = answer['usage']
  if (!isCount(input_tokens) || !isCount(output_tokens)) return undefined
  return {
    inputTokens: input_tokens,
    outputTokens: output_tokens,
    ...(isCount(cache_read_input_tokens) && { cacheReadTokens: cache_read_input_tokens }),
  }
}

/** Throws where the model answered without a search: what it remembers is no source. */
function readAnswer(answer: unknown): WebSearchResult {
  const blocks: readonly unknown[] =
    isFields(answer) && Array.isArray(answer['content']) ? answer['content'] : []
  const results = blocks.flatMap(block =>
    isFields(block) && block['type'] === 'web_search_tool_result' ? [block['content']] : [],
  )
  if (results.length === 0) throw new WebError('WEB_PROVIDER_ERROR', 'DeepSeek answered without a search')
  const lists = results.filter(content => Array.isArray(content))
  if (lists.length === 0) throw failed(results)
  const sources = distinct(lists.flat().flatMap(toSource))
  const content = blocks
    .flatMap(block => (isFields(block) && block['type'] === 'text' ? [block['text']] : []))
    .filter(text => typeof text === 'string')
    .join('')
    .trim()
  return { ...(content !== '' && { content }), sources, truncated: false }
}

function toSource(item: unknown): readonly WebSource[] {
  if (!isFields(item)) return []
  const { url, title, page_age: publishedAt } = item
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol)) return []
  return [
    {
      url: parsed.href,
      ...(typeof title === 'string' && title !== '' && { title }),
      ...(typeof publishedAt === 'string' && publishedAt !== '' && { publishedAt }),
    },
  ]
}

function distinct(sources: readonly WebSource[]): readonly WebSource[] {
  return [...new Map(sources.toReversed().map(source => [source.url, source])).values()].toReversed()
}

function failed(results: readonly unknown[]): WebError {
  const codes = results.flatMap(result =>
    isFields(result) && typeof result['error_code'] === 'string' ? [result['error_code']] : [],
  )
  const why = codes.join(', ') || 'no reason given'
  return new WebError('WEB_PROVIDER_ERROR', `the search by DeepSeek failed: ${why}`)
}
