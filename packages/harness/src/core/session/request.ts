import type { EpochHeader, RequestContext, SessionEvent, ToolSchema } from '@dsh/protocol'
import { isAdopted } from '../../kernel/index.ts'
import { callConfigEquals } from '../llm/index.ts'
import type { FoldDefinition } from './fold.ts'

/** The header of the last request, in canonical form. */
export const requestHeader: FoldDefinition<EpochHeader | undefined, 'request/header'> = {
  name: 'request header',
  types: ['request/header'],
  init: () => undefined,
  apply: (_state, event) => canonicalHeader(event.data.header),
}

export const requestContext: FoldDefinition<RequestContext | undefined, 'request/context'> = {
  name: 'request context',
  types: ['request/context'],
  init: () => undefined,
  apply: (_state, event) => event.data,
}

/** The header after `events`, which follow those that gave `from`. */
export function foldRequestHeader(
  events: readonly SessionEvent[],
  from?: EpochHeader,
): EpochHeader | undefined {
  const event = events.findLast(each => each.type === 'request/header')
  return event === undefined ? from : canonicalHeader(event.data.header)
}

/** Without what is empty: no system, no tools and no markers are absent. A canonical header is given back itself. */
export function canonicalHeader(header: EpochHeader): EpochHeader {
  const { config, adapterDefaults, system, tools } = header
  const { reasoningEffort, maxTokens } = adapterDefaults ?? {}
  const marked = reasoningEffort === true || maxTokens === true
  const isCanonical = system !== '' && tools?.length !== 0 && (adapterDefaults === undefined || marked)
  if (isCanonical) return header
  return Object.freeze({
    config,
    ...(marked && adapterDefaults !== undefined ? { adapterDefaults } : {}),
    ...(system === undefined || system === '' ? {} : { system }),
    ...(tools === undefined || tools.length === 0 ? {} : { tools }),
  })
}

/** Whether two headers ask for the same request. Cheap where they share parts. */
export function headerEquals(a: EpochHeader, b: EpochHeader): boolean {
  if (a === b) return true
  return (
    callConfigEquals(a.config, b.config) &&
    a.adapterDefaults?.reasoningEffort === b.adapterDefaults?.reasoningEffort &&
    a.adapterDefaults?.maxTokens === b.adapterDefaults?.maxTokens &&
    (a.system ?? '') === (b.system ?? '') &&
    listEquals(a.tools ?? [], b.tools ?? [], toolEquals)
  )
}

function listEquals<T>(a: readonly T[], b: readonly T[], equals: (a: T, b: T) => boolean): boolean {
  if (a === b) return true
  return a.length === b.length && a.every((each, index) => equals(each, b[index] as T))
}

function toolEquals(a: ToolSchema, b: ToolSchema): boolean {
  return a === b || (a.name === b.name && textOf(a) === textOf(b))
}

const texts = new WeakMap<ToolSchema, string>()

/** The JSON text; kept only for what can no longer change. */
function textOf(tool: ToolSchema): string {
  const known = texts.get(tool)
  if (known !== undefined) return known
  const text = JSON.stringify(tool)
  if (isAdopted(tool)) texts.set(tool, text)
  return text
}
