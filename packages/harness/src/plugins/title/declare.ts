import './events.ts'
import type { EventTypeDefinition } from '../../core/session/index.ts'
import { isCount, isFields, isPositive, isText } from '../../kernel/index.ts'

/** Notes about a session, so a reader that does not know them loses nothing. */
export const titleEvents: readonly EventTypeDefinition[] = [
  { type: 'session/title', ignorable: true, validate: assertTitle },
  { type: 'session/title-llm-request', ignorable: true, validate: assertRequest },
  { type: 'session/title-llm-result', ignorable: true, validate: assertResult },
]

function assertTitle(data: unknown): void {
  if (!isFields(data)) throw new TypeError('data is no record')
  const { title, messageSeqs, source } = data
  if (!isText(title)) throw new TypeError(`title is ${JSON.stringify(title)}`)
  assertSeqs(messageSeqs)
  if (!isFields(source)) throw new TypeError('source is no record')
  const cites = messageSeqs.length > 0
  switch (source['kind']) {
    case 'user':
      if (cites) throw new TypeError('a title that a person gave cites no messages')
      return
    case 'provider':
      if (!isText(source['provider'])) throw new TypeError('the provider has no name')
    // fall through
    case 'fallback':
      if (!cites) throw new TypeError(`a title of the ${source['kind']} cites at least one message`)
      return
    default:
      throw new TypeError(`source.kind is ${JSON.stringify(source['kind'])}`)
  }
}

function assertRequest(data: unknown): void {
  if (!isFields(data)) throw new TypeError('data is no record')
  const { titleProvider, messageSeqs, route, system, messages, maxTokens } = data
  if (!isText(titleProvider)) throw new TypeError('titleProvider is no name')
  assertSeqs(messageSeqs)
  if (!isFields(route) || !isText(route['provider']) || !isText(route['model']))
    throw new TypeError('route names no model')
  if (typeof system !== 'string') throw new TypeError('system is no text')
  if (!Array.isArray(messages)) throw new TypeError('messages is no list')
  if (!isPositive(maxTokens)) throw new TypeError(`maxTokens is ${JSON.stringify(maxTokens)}`)
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

function assertSeqs(value: unknown): asserts value is readonly number[] {
  if (!Array.isArray(value) || !value.every(isCount)) throw new TypeError('messageSeqs is no list of events')
  if (value.some((seq, at) => at > 0 && seq <= (value[at - 1] as number)))
    throw new TypeError('messageSeqs is not in order')
}
