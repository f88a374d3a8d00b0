import type { JsonValue } from '@dsh/protocol'
import { adopt, isFields } from '../../kernel/index.ts'
import { JsonSchemaError } from './errors.ts'
import { describePlace } from './place.ts'
import type { Place } from './place.ts'

export type JsonRecord = { readonly [key: string]: JsonValue }

export type JsonType = 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object'

const jsonTypes = new Set(['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'])
const annotations = new Set(['title', 'description', 'default', 'examples'])
const keywords = new Set([
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'oneOf',
])
/** Keywords that mean something for one type alone. */
const ownType = new Map([
  ['properties', 'object'],
  ['required', 'object'],
  ['additionalProperties', 'object'],
  ['items', 'array'],
])

interface Open {
  readonly schema: unknown
  readonly place: Place | undefined
}

/**
 * A frozen copy of `schema`, which uses nothing but what is enforced here: one `type`, `properties`, `required`, a
 * boolean `additionalProperties`, `items`, `enum`, `const` and `oneOf`.
 *
 * Throws a JsonSchemaError that names every other place. Depth is bounded by memory alone.
 */
export function toJsonSchema(schema: unknown, name: string): JsonRecord {
  const root: unknown = adopt(schema, name)
  const problems: string[] = []
  const open: Open[] = [{ schema: root, place: undefined }]
  // The list grows while it is read, so that problems come in the order of depth.
  for (const next of open) {
    const { place } = next
    const report = (problem: string): void => {
      problems.push(`${describePlace('(top level)', place)}: ${problem}`)
    }
    if (!isRecord(next.schema)) report('is no schema')
    else
      inspect(next.schema, report, (inner, ...keys) =>
        open.push({ schema: inner, place: below(place, keys) }),
      )
  }
  if (problems.length > 0) throw new JsonSchemaError(name, problems)
  return root as JsonRecord
}

export function isRecord(value: unknown): value is JsonRecord {
  return isFields(value)
}

/** Whether `value` is of `type`, as JSON Schema means it. */
export function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isRecord(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

function below(place: Place | undefined, keys: readonly (string | number)[]): Place | undefined {
  let inner = place
  for (const key of keys) inner = { parent: inner, key }
  return inner
}

type Report = (problem: string) => void
type Descend = (schema: unknown, ...keys: (string | number)[]) => void

function inspect(schema: JsonRecord, report: Report, descend: Descend): void {
  const { type } = schema
  for (const key of Object.keys(schema)) {
    if (annotations.has(key)) continue
    if (!keywords.has(key)) report(`unknown keyword ${JSON.stringify(key)}`)
    const needed = ownType.get(key)
    if (needed !== undefined && type !== needed) report(`"${key}" belongs to type "${needed}"`)
  }
  if (type !== undefined && !(typeof type === 'string' && jsonTypes.has(type))) {
    report(`type is ${JSON.stringify(type)}, not one of ${[...jsonTypes].join(', ')}`)
  }
  inspectObject(schema, report, descend)
  inspectChoices(schema, report)
  if (Object.hasOwn(schema, 'items')) descend(schema['items'], 'items')
  if (Object.hasOwn(schema, 'oneOf')) inspectOneOf(schema, report, descend)
}

function inspectObject(schema: JsonRecord, report: Report, descend: Descend): void {
  const { properties, required, additionalProperties } = schema
  if (isRecord(properties)) {
    for (const [key, inner] of Object.entries(properties)) descend(inner, 'properties', key)
  } else if (properties !== undefined) report('properties is no map of schemas')
  if (required !== undefined && !isNameList(required)) report('required is no list of different names')
  if (additionalProperties !== undefined && typeof additionalProperties !== 'boolean') {
    report('additionalProperties is neither true nor false')
  }
}

function isNameList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every(name => typeof name === 'string') &&
    new Set(value).size === value.length
  )
}

function inspectChoices(schema: JsonRecord, report: Report): void {
  const { enum: options, const: single } = schema
  const type = typeof schema['type'] === 'string' ? schema['type'] : undefined
  const isWrong = (value: JsonValue): boolean => type !== undefined && !isOfType(value, type)
  if (options !== undefined && (!Array.isArray(options) || options.length === 0))
    report('enum is no list of values')
  else if (Array.isArray(options) && options.some(isWrong)) report(`enum has a value that is no ${type}`)
  if (single !== undefined && isWrong(single)) report(`const is no ${type}`)
}

function inspectOneOf(schema: JsonRecord, report: Report, descend: Descend): void {
  const { oneOf } = schema
  if (!Array.isArray(oneOf) || oneOf.length === 0) {
    report('oneOf is no list of schemas')
    return
  }
  for (const key of Object.keys(schema)) {
    if (key !== 'oneOf' && keywords.has(key)) report(`"${key}" cannot stand beside oneOf`)
  }
  for (const [index, inner] of oneOf.entries()) descend(inner, 'oneOf', index)
}
