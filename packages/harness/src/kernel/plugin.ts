import { KernelError } from './errors.ts'
import { issueTexts } from './schema-issue.ts'
import type { Context } from './context.ts'
import type { SchemaIssue } from './schema-issue.ts'

/** The part of Standard Schema that config validation uses; zod, valibot and arktype schemas have it. */
export interface ConfigSchema<In = unknown, Out = In> {
  readonly '~standard': {
    validate(value: unknown): SchemaResult<Out> | Promise<SchemaResult<Out>>
    readonly types?: { readonly input: In; readonly output: Out } | undefined
  }
}

export type SchemaResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** A list of required services, or both kinds. A plugin runs only while each required one is there. */
export type Inject =
  | readonly string[]
  | { readonly required?: readonly string[]; readonly optional?: readonly string[] }

interface PluginFacts<In, Out> {
  /** Shown in errors and by `inspect`; defaults to the function or class name. */
  readonly name?: string
  readonly inject?: Inject
  readonly Config?: ConfigSchema<In, Out>
}

/** What set-up may give back: nothing, or a function that undoes it. */
export type SetupResult = void | (() => void | Promise<void>) | Promise<void | (() => void | Promise<void>)>

export type PluginObject<In = void, Out = In> = PluginFacts<In, Out> & {
  apply(ctx: Context, config: Out): SetupResult
}
export type PluginFunction<In = void, Out = In> = ((ctx: Context, config: Out) => SetupResult) &
  PluginFacts<In, Out>
export type PluginClass<In = void, Out = In> = (new (ctx: Context, config: Out) => object) &
  PluginFacts<In, Out>

/** `In` is what the one who mounts it writes, `Out` what the plugin gets after its schema filled in defaults. */
export type Plugin<In = void, Out = In> =
  | PluginObject<In, Out>
  | PluginFunction<In, Out>
  | PluginClass<In, Out>

/** A plugin in one shape, whatever form it was written in. */
export interface Definition {
  readonly name: string
  readonly required: readonly string[]
  readonly optional: readonly string[]
  readonly schema: ConfigSchema | undefined
  readonly setup: (ctx: Context, config: unknown) => unknown
}

const forms = 'a list of service keys, or {required: [...], optional: [...]}'

/** Throws INVALID_PLUGIN, naming the plugin and the right form. */
export function toDefinition(plugin: unknown): Definition {
  const isObject = typeof plugin === 'object' && plugin !== null
  if (typeof plugin !== 'function' && !isObject) {
    throw new KernelError(
      'INVALID_PLUGIN',
      `a plugin is a function, a class or an object with apply, not ${typeof plugin}`,
    )
  }
  const facts = plugin as PluginFacts<unknown, unknown>
  const name = typeof facts.name === 'string' && facts.name !== '' ? facts.name : 'anonymous'
  const setup = toSetup(plugin, name)
  const { required, optional } = toInject(facts.inject, name)
  return { name, required, optional, schema: facts.Config, setup }
}

function toSetup(plugin: object, name: string): Definition['setup'] {
  if (typeof plugin === 'function') {
    if (isClass(plugin)) {
      const Plugin = plugin as new (ctx: Context, config: unknown) => object
      return (ctx, config) => void new Plugin(ctx, config)
    }
    return plugin as Definition['setup']
  }
  const { apply } = plugin as { apply?: unknown }
  if (typeof apply !== 'function') {
    throw new KernelError('INVALID_PLUGIN', `plugin "${name}" has no apply function`)
  }
  return (ctx, config) => apply.call(plugin, ctx, config)
}

function isClass(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value))
}

function toInject(
  inject: unknown,
  name: string,
): { required: readonly string[]; optional: readonly string[] } {
  if (inject === undefined) return { required: [], optional: [] }
  if (isKeyList(inject)) return { required: [...new Set(inject)], optional: [] }
  if (typeof inject === 'object' && inject !== null && !Array.isArray(inject)) {
    const { required = [], optional = [], ...rest } = inject as { required?: unknown; optional?: unknown }
    if (Object.keys(rest).length === 0 && isKeyList(required) && isKeyList(optional)) {
      return { required: [...new Set(required)], optional: [...new Set(optional)] }
    }
  }
  throw new KernelError(
    'INVALID_PLUGIN',
    `inject of plugin "${name}" is ${JSON.stringify(inject)}; write ${forms}`,
  )
}

function isKeyList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(key => typeof key === 'string' && key !== '')
}

/** Runs the plugin's schema. Throws INVALID_CONFIG with one line per problem, paths first. */
export async function resolveConfig(definition: Definition, config: unknown): Promise<unknown> {
  return checked(definition, await definition.schema?.['~standard'].validate(config), config)
}

/** The same at once, or undefined where the schema needs a promise. */
export function resolveConfigNow(definition: Definition, config: unknown): { value: unknown } | undefined {
  if (definition.schema === undefined) return { value: config }
  const result = definition.schema['~standard'].validate(config)
  return result instanceof Promise ? undefined : { value: checked(definition, result, config) }
}

function checked(
  definition: Definition,
  result: SchemaResult<unknown> | undefined,
  config: unknown,
): unknown {
  if (result === undefined) return config
  if (result.issues === undefined) return result.value
  const lines = result.issues.flatMap(issueTexts)
  throw new KernelError(
    'INVALID_CONFIG',
    `config of plugin "${definition.name}" is not valid: ${lines.join('; ')}`,
  )
}
