import type { OutputUnit, Schema, SchemaDraft, Validator } from '@cfworker/json-schema'
import type { JsonValue } from '@dsh/protocol'
import { describePlace } from './place.ts'
import type { Place } from './place.ts'
import { isRecord } from './schema.ts'
import type { JsonRecord } from './schema.ts'
import { readThrown } from './thrown.ts'

/** What is wrong with a value, path first. A promise until the checker has been loaded. */
export type ForeignCheck = (value: JsonValue, root: string) => readonly string[] | Promise<readonly string[]>

const drafts: readonly (readonly [mark: string, draft: SchemaDraft])[] = [
  ['draft-04', '4'],
  ['draft-06', '7'],
  ['draft-07', '7'],
  ['2019-09', '2019-09'],
]
/** What stands below these is data, not schema. */
const data = new Set(['enum', 'const', 'default', 'examples'])

/**
 * A check for any JSON Schema, drafts 4 to 2020-12.
 *
 * The checker is loaded on first use. Patterns that are no JavaScript patterns and references that lead out of the
 * schema constrain nothing. What cannot be checked at all, is refused.
 */
export function compileForeign(schema: JsonRecord): ForeignCheck {
  let validator: Validator | undefined
  let loading: Promise<void> | undefined
  const load = async (): Promise<void> => {
    const { Validator } = await import('@cfworker/json-schema')
    validator = new Validator(checkable(schema) as Schema, draftOf(schema), false)
  }
  const check = (value: JsonValue, root: string): readonly string[] => {
    try {
      const { valid, errors } = (validator as Validator).validate(value)
      return valid
        ? []
        : leaves(errors).map(error => `${describePlace(root, placeOf(error))}: ${error.error}`)
    } catch (error) {
      return [`${root}: cannot be checked: ${readThrown(error).message}`]
    }
  }
  return (value, root) => {
    if (validator !== undefined) return check(value, root)
    loading ??= load()
    return loading.then(
      () => check(value, root),
      (error: unknown) => [`${root}: cannot be checked: ${readThrown(error).message}`],
    )
  }
}

function draftOf(schema: JsonRecord): SchemaDraft {
  const { $schema } = schema
  const named = typeof $schema === 'string' ? drafts.find(([mark]) => $schema.includes(mark)) : undefined
  return named?.[1] ?? '2020-12'
}

/** A copy the checker may write its marks into, without what it would stumble over. */
function checkable(schema: JsonRecord): unknown {
  const root: { schema?: unknown } = {}
  const open: [target: object, key: string | number, source: JsonValue][] = [[root, 'schema', schema]]
  for (const [target, key, source] of open) {
    const copy: unknown = Array.isArray(source) ? [] : isRecord(source) ? {} : source
    Object.defineProperty(target, key, { value: copy, enumerable: true, writable: true, configurable: true })
    if (typeof copy !== 'object' || copy === null) continue
    for (const [inner, value] of Object.entries(source as object) as [string, JsonValue][]) {
      if (isStumblingBlock(inner, value)) continue
      if (key === 'patternProperties' && !isPattern(inner)) continue
      if (data.has(inner) && key !== 'properties') Object.assign(copy, { [inner]: structuredClone(value) })
      else open.push([copy, Array.isArray(copy) ? Number(inner) : inner, value])
    }
  }
  return root.schema
}

function isStumblingBlock(key: string, value: JsonValue): boolean {
  if (typeof value !== 'string') return false
  return (key === 'pattern' && !isPattern(value)) || (key === '$ref' && !value.startsWith('#'))
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}

/** Errors that no other error explains. */
function leaves(errors: readonly OutputUnit[]): OutputUnit[] {
  const places = errors.map(({ keywordLocation }) => keywordLocation)
  return errors.filter(
    ({ keywordLocation }) => !places.some(other => other.startsWith(`${keywordLocation}/`)),
  )
}

/** From a pointer such as `#/todos/0/status`. */
function placeOf({ instanceLocation }: OutputUnit): Place | undefined {
  const [, ...keys] = instanceLocation.split('/')
  let place: Place | undefined
  for (const raw of keys) {
    const key = raw.replaceAll('~1', '/').replaceAll('~0', '~')
    place = { parent: place, key: /^\d+$/.test(key) ? Number(key) : key }
  }
  return place
}
