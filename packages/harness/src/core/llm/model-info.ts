import { isPositive, isText } from '../../kernel/index.ts'
import type { LlmProviderInfo, LlmResolvedModelInfo, ReasoningEffort } from './adapter.ts'
import { llmError } from './failure.ts'
import type { LlmFailureCode } from './failure.ts'

type Facts = LlmResolvedModelInfo
type Bad = (problem: string, code?: LlmFailureCode) => Error
type OptionalField = 'description' | 'inputModalities' | 'context' | 'defaultMaxTokens' | 'reasoning'

/** A frozen copy of what an adapter says of a model. Throws INVALID_MODEL_… for what contradicts its route or itself. */
export function checkedModelInfo(value: unknown, route: { provider: string; model?: string }): Facts {
  const bad: Bad = (problem, code = 'INVALID_MODEL_INFO') => llmError(code, `${routeName(route)}: ${problem}`)
  if (typeof value !== 'object' || value === null) throw bad(`model info is no object but ${String(value)}`)
  const given = { ...(value as Facts) }
  const { provider, id, name } = given
  if (provider !== route.provider) throw bad(`model info names provider ${JSON.stringify(provider)}`)
  if (!isText(id)) throw bad('model info has no id')
  if (route.model !== undefined && id !== route.model)
    throw bad(`model info names model ${JSON.stringify(id)}`)
  if (!isText(name)) throw bad('model info has no name')
  const info: Record<string, unknown> = { provider, id, name }
  for (const field of Object.keys(optionalFields) as OptionalField[]) {
    const fact = given[field]
    if (fact !== undefined) info[field] = optionalFields[field](fact, bad)
  }
  return Object.freeze(info) as unknown as Facts
}

const optionalFields: { readonly [Field in OptionalField]: (value: unknown, bad: Bad) => Facts[Field] } = {
  description(value, bad) {
    if (typeof value !== 'string') throw bad('model description is no string')
    return value
  },
  inputModalities(value, bad) {
    if (!isModalities(value)) throw bad('inputModalities must list "text" and "image"')
    return Object.freeze([...value])
  },
  context(value, bad) {
    const { contextWindow } = (value ?? {}) as { contextWindow?: unknown }
    if (!isPositive(contextWindow))
      throw bad(`contextWindow is ${String(contextWindow)}`, 'INVALID_MODEL_CONTEXT')
    return Object.freeze({ contextWindow })
  },
  defaultMaxTokens(value, bad) {
    if (!isPositive(value)) throw bad(`defaultMaxTokens is ${String(value)}`, 'INVALID_MODEL_MAX_TOKENS')
    return value
  },
  reasoning(value, bad) {
    return checkedReasoning((value ?? {}) as NonNullable<Facts['reasoning']>, problem =>
      bad(problem, 'INVALID_MODEL_REASONING'),
    )
  },
}

function checkedReasoning(
  value: NonNullable<Facts['reasoning']>,
  bad: (problem: string) => Error,
): NonNullable<Facts['reasoning']> {
  const { efforts: given, defaultEffort } = value
  if (!Array.isArray(given) || given.length === 0) throw bad('reasoning lists no efforts')
  const efforts = (given as readonly ReasoningEffort[]).map(effort => checkedEffort(effort, bad))
  const ids = new Set(efforts.map(effort => effort.id))
  if (ids.size !== efforts.length) throw bad('reasoning lists an effort twice')
  if (defaultEffort === undefined) return Object.freeze({ efforts: Object.freeze(efforts) })
  if (!ids.has(defaultEffort))
    throw bad(`default effort ${JSON.stringify(defaultEffort)} is not among the efforts`)
  return Object.freeze({ efforts: Object.freeze(efforts), defaultEffort })
}

function checkedEffort(value: ReasoningEffort, bad: (problem: string) => Error): ReasoningEffort {
  const { id, name, description } = (value ?? {}) as Partial<ReasoningEffort>
  if (!isText(id) || !isText(name)) throw bad('a reasoning effort has no id or no name')
  if (description === undefined) return Object.freeze({ id, name })
  if (typeof description !== 'string') throw bad('the description of a reasoning effort is no string')
  return Object.freeze({ id, name, description })
}

/** The catalog of one provider: checked, detached, each model once. */
export function checkedCatalog(models: unknown, provider: string): readonly LlmResolvedModelInfo[] {
  if (!Array.isArray(models))
    throw llmError('INVALID_CATALOG', `provider "${provider}" gave no list of models`)
  const infos = models.map(model => checkedModelInfo(model, { provider }))
  const seen = new Set<string>()
  for (const { id } of infos) {
    if (seen.has(id)) throw llmError('INVALID_CATALOG', `provider "${provider}" lists model "${id}" twice`)
    seen.add(id)
  }
  return Object.freeze(infos)
}

/** Throws INVALID_ADAPTER unless the info is of this provider. */
export function checkedProviderInfo(value: unknown, provider: string): LlmProviderInfo {
  const { id, name } = (typeof value === 'object' && value !== null ? value : {}) as Partial<LlmProviderInfo>
  if (id === provider && isText(name)) return Object.freeze({ id, name })
  throw llmError(
    'INVALID_ADAPTER',
    `provider info of "${provider}" has id ${JSON.stringify(id)} and name ${JSON.stringify(name)}`,
  )
}

function routeName(route: { provider: string; model?: string }): string {
  return route.model === undefined ? `provider "${route.provider}"` : `${route.provider}/${route.model}`
}

function isModalities(value: unknown): value is readonly ('text' | 'image')[] {
  return Array.isArray(value) && value.every(entry => entry === 'text' || entry === 'image')
}
