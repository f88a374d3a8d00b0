import type { JsonValue } from '@dsh/protocol'
import { isRecord, toJsonSchema } from './schema.ts'
import type { JsonRecord, JsonType } from './schema.ts'
import { JsonSchemaError } from './errors.ts'
import { describePlace } from './place.ts'
import type { Place } from './place.ts'

type Scalar = string | number | boolean | null

interface Annotations {
  readonly title?: string
  readonly description?: string
  /** Told to the model; never filled in. */
  readonly default?: JsonValue
  readonly examples?: readonly JsonValue[]
}

interface Choices<T extends Scalar> {
  readonly enum?: readonly T[]
  readonly const?: T
}

/** One value of a tool's parameters or result, written short. `json` is any value at all. */
export type ValueSpec = Annotations &
  (
    | ({ readonly type: 'string' } & Choices<string>)
    | ({ readonly type: 'number' | 'integer' } & Choices<number>)
    | ({ readonly type: 'boolean' } & Choices<boolean>)
    | { readonly type: 'null' }
    | { readonly type: 'array'; readonly items?: ValueSpec }
    | {
        readonly type: 'object'
        readonly properties?: PropertyMap
        /** Whether further properties may stand beside these. */
        readonly additionalProperties: boolean
      }
    | { readonly type: 'json' }
    /** Exactly one of them must match. */
    | { readonly oneOf: readonly [ValueSpec, ValueSpec, ...ValueSpec[]] }
  )

export type PropertySpec = ValueSpec & { readonly required?: boolean }

/** Properties of an object by name. At the root of a tool's parameters, further ones are tolerated. */
export interface PropertyMap {
  readonly [name: string]: PropertySpec
}

// Types are exact to this depth; below it a value is a JsonValue. What runs is exact everywhere.
type Levels = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
type Below<Depth> = Depth extends [0, ...infer Rest] ? Rest : []

/** The TypeScript type of what a spec, or a JSON Schema written as a literal, admits. */
export type ValueOf<Spec, Depth extends unknown[] = Levels> = Depth extends []
  ? JsonValue
  : Spec extends { readonly const: infer Value extends Scalar }
    ? Value
    : Spec extends { readonly enum: readonly (infer Value extends Scalar)[] }
      ? Value
      : Spec extends { readonly oneOf: readonly (infer Option)[] }
        ? OptionOf<Option, Below<Depth>>
        : Spec extends { readonly type: infer Type }
          ? ByType<Type, Spec, Depth>
          : JsonValue

type OptionOf<Option, Depth extends unknown[]> = Option extends unknown ? ValueOf<Option, Depth> : never

interface Plain {
  string: string
  number: number
  integer: number
  boolean: boolean
  null: null
}

type ByType<Type, Spec, Depth extends unknown[]> = Type extends keyof Plain
  ? Plain[Type]
  : Type extends 'array'
    ? readonly (Spec extends { readonly items: infer Item } ? ValueOf<Item, Below<Depth>> : JsonValue)[]
    : Type extends 'object'
      ? Spec extends { readonly properties: infer Properties }
        ? PropertiesOf<Properties, RequiredIn<Spec>, Below<Depth>>
        : JsonRecord
      : JsonValue

type RequiredIn<Spec> = Spec extends { readonly required: readonly (infer Name)[] } ? Name : never

type RequiredKeys<Properties, Listed> = {
  [Name in keyof Properties]: Properties[Name] extends { readonly required: true }
    ? Name
    : Name extends Listed
      ? Name
      : never
}[keyof Properties]

/** The object a map of properties admits; those in `Listed` or marked `required: true` are always there. */
export type PropertiesOf<Properties, Listed = never, Depth extends unknown[] = Levels> = Flat<
  {
    readonly [Name in RequiredKeys<Properties, Listed>]: ValueOf<Properties[Name], Depth>
  } & {
    readonly [Name in Exclude<keyof Properties, RequiredKeys<Properties, Listed>>]?: ValueOf<
      Properties[Name],
      Depth
    >
  }
>

type Flat<T> = { [Key in keyof T]: T[Key] }

interface Open {
  readonly spec: unknown
  readonly place: Place
  readonly isProperty: boolean
  put(schema: JsonRecord): void
}

type Schema = Record<string, unknown>

/**
 * The JSON Schema of a map of properties: an object that also admits others. Throws a JsonSchemaError that names every
 * place it cannot read.
 */
export function toParameters(properties: unknown, name: string): JsonRecord {
  const problems: string[] = []
  const open: Open[] = []
  const root = objectOf(properties, { place: undefined, open })
  // The list grows while it is read: depth is not a matter of the stack.
  for (const next of open) {
    const report = (problem: string): void => {
      problems.push(`${describePlace('(top level)', next.place)}: ${problem}`)
    }
    if (!isRecord(next.spec)) report('is no value spec')
    else next.put(convert(next.spec, next, { open, report }) as JsonRecord)
  }
  if (problems.length > 0) throw new JsonSchemaError(name, problems)
  return toJsonSchema(root, name)
}

function objectOf(properties: unknown, { place, open }: { place: Place | undefined; open: Open[] }): Schema {
  if (!isRecord(properties)) throw new TypeError('properties is no map of value specs')
  const schemas: Schema = {}
  const required = Object.keys(properties).filter(key => {
    const spec = properties[key]
    return isRecord(spec) && spec['required'] === true
  })
  for (const [key, spec] of Object.entries(properties)) {
    // Defined, not assigned: "__proto__" is a name like any other.
    const put = (schema: JsonRecord): void => {
      Object.defineProperty(schemas, key, {
        value: schema,
        enumerable: true,
        writable: true,
        configurable: true,
      })
    }
    put({})
    open.push({ spec, place: { parent: place, key }, isProperty: true, put })
  }
  return { type: 'object', properties: schemas, ...(required.length === 0 ? {} : { required }) }
}

interface Walk {
  readonly open: Open[]
  report(problem: string): void
}

function convert(spec: JsonRecord, at: Open, walk: Walk): Schema {
  const { type, required, properties, items, oneOf, ...rest } = spec
  const { place } = at
  if (required !== undefined && !(at.isProperty && typeof required === 'boolean')) {
    walk.report('required is true or false on a property, nothing elsewhere')
  }
  if (oneOf !== undefined) return { ...rest, oneOf: alternatives(oneOf, place, walk) }
  if (type === 'json') return rest
  const schema: Schema = { type: type as JsonType, ...rest }
  if (type === undefined) walk.report('has neither type nor oneOf')
  if (items !== undefined) nest(schema, 'items', { spec: items, place, walk })
  if (type !== 'object') return properties === undefined ? schema : Object.assign(schema, { properties })
  if (typeof rest['additionalProperties'] !== 'boolean')
    walk.report('additionalProperties must be true or false')
  if (properties === undefined) return schema
  if (isRecord(properties)) return Object.assign(schema, objectOf(properties, { place, open: walk.open }))
  walk.report('properties is no map of value specs')
  return schema
}

function nest(
  schema: Schema,
  key: string,
  { spec, place, walk }: { spec: unknown; place: Place; walk: Walk },
): void {
  const put = (inner: JsonRecord): void => {
    schema[key] = inner
  }
  walk.open.push({ spec, place: { parent: place, key }, isProperty: false, put })
}

function alternatives(oneOf: unknown, place: Place, walk: Walk): unknown[] {
  if (!Array.isArray(oneOf) || oneOf.length < 2) {
    walk.report('oneOf needs at least two alternatives')
    return []
  }
  const schemas: unknown[] = oneOf.map(() => ({}))
  for (const [index, spec] of oneOf.entries()) {
    const put = (inner: JsonRecord): void => {
      schemas[index] = inner
    }
    walk.open.push({
      spec,
      place: { parent: { parent: place, key: 'oneOf' }, key: index },
      isProperty: false,
      put,
    })
  }
  return schemas
}
