import './events.ts'
import type { EventTypeDefinition } from '../../core/session/index.ts'
import { isCount, isFields, isPositive, isText } from '../../kernel/index.ts'

/** Notes about a session, so a reader that does not know them loses nothing. */
export const webEvents: readonly EventTypeDefinition[] = [
  { type: 'web/deepseek-search-llm-request', ignorable: true, validate: assertRequest },
  { type: 'web/deepseek-search-llm-result', ignorable: true, validate: assertResult },
]

function assertRequest(data: unknown): void {
  if (!isFields(data)) throw new TypeError('data is no record')
  const { url, model, query, maxTokens, maxUses } = data
  if (!isText(url) || !isText(model)) throw new TypeError('url and model are no texts')
  if (typeof query !== 'string') throw new TypeError('query is no text')
  if (!isPositive(maxTokens) || !isPositive(maxUses))
    throw new TypeError('maxTokens and maxUses count nothing')
}

function assertResult(data: unknown): void {
  if (!isFields(data)) throw new TypeError('data is no record')
  const { requestSeq, problem, usage } = data
  if (!isCount(requestSeq)) throw new TypeError(`requestSeq is ${JSON.stringify(requestSeq)}`)
  if (problem !== undefined && !isText(problem)) throw new TypeError('problem is no text')
  if (usage === undefined) return
  if (!isFields(usage) || !isCount(usage['inputTokens']) || !isCount(usage['outputTokens']))
    throw new TypeError('usage counts no tokens')
}
