import type { ContentBlock, JsonValue } from '@dsh/protocol'
import type { Checked, Contract } from './contract.ts'
import type { ToolEffect } from './effect.ts'
import { ToolArgsError } from './errors.ts'
import { toOutputContract, toParametersContract } from './read-schema.ts'
import { toContent } from './result.ts'
import type { JsonRecord } from './schema.ts'
import type { PropertiesOf, PropertyMap, ValueOf, ValueSpec } from './spec.ts'
import type { StandardSchema } from './standard.ts'
import type {
  ToolDefinition,
  ToolExecution,
  ToolExecutionResult,
  ToolOutputDefinition,
  ToolRunContext,
  ToolView,
} from './tool.ts'

/** A zod object, a JSON Schema, or a map of properties. */
export type ParametersSpec = StandardSchema | (JsonRecord & { readonly type: 'object' }) | PropertyMap
export type OutputSpec = StandardSchema | JsonRecord | ValueSpec | PropertyMap

/** What `execute` is given for such parameters. */
export type ArgsOf<Parameters> =
  Parameters extends StandardSchema<infer Output>
    ? Output
    : Parameters extends { readonly type: 'object' }
      ? ValueOf<Parameters>
      : PropertiesOf<Parameters>

/** What `execute` has to give for such an output. */
export type ResultOf<Output> =
  Output extends StandardSchema<infer Value>
    ? Value
    : Output extends { readonly type: string } | { readonly oneOf: readonly unknown[] }
      ? ValueOf<Output>
      : Output extends PropertyMap
        ? PropertiesOf<Output>
        : JsonValue

interface ToolParts<Parameters, Args, Value> {
  readonly name: string
  readonly description: string
  readonly parameters: Parameters
  /** Runs only with arguments that fit. Asynchronous work must end when `exec.signal` aborts. */
  execute(args: Args, exec: ToolRunContext): Value | Promise<Value>
  finalizeContent?(exec: ToolExecution, result: ToolExecutionResult): readonly ContentBlock[] | undefined
  readonly timeoutMs?: number
  /** Can be called, but is offered to a model only once it was asked for: see `offerTools` in `core/prompt`. */
  readonly deferred?: true
  /** Only the exact answer true lets a call run beside others; not asked for arguments that do not fit. */
  isConcurrencySafe?(args: Args): boolean
  /** What the call would do to the world; not asked for arguments that do not fit. */
  effects?(args: Args): readonly ToolEffect[]
  presentCall?(args: Args): ToolView | undefined
  presentResult?(args: Args, result: PresentedResult): ToolView | undefined
}

type PresentedResult = Parameters<NonNullable<ToolDefinition['presentResult']>>[1]

interface OutputParts<Args, Output, Value> {
  readonly schema: Output
  /** A string is one block of text. */
  render(args: Args, value: Value): string | readonly ContentBlock[]
  presentationMeta?(args: Args, value: Value): JsonValue | undefined
}

/** Any tool, as the checks below see it. */
type AnyParts = ToolParts<unknown, unknown, unknown> & {
  readonly output?: 'content' | OutputParts<unknown, unknown, unknown>
}

/**
 * A tool whose arguments are checked before anything of it runs, and whose types follow from its schemas.
 *
 * Without `output` the result is a string, and the model reads it as it is; with `output: 'content'` it is a list of
 * content blocks. Throws a JsonSchemaError for a schema that says what cannot be enforced.
 */
export function defineTool<const P extends ParametersSpec>(
  parts: ToolParts<P, ArgsOf<P>, string> & { readonly output?: undefined },
): ToolDefinition
export function defineTool<const P extends ParametersSpec>(
  parts: ToolParts<P, ArgsOf<P>, readonly ContentBlock[]> & { readonly output: 'content' },
): ToolDefinition
export function defineTool<const P extends ParametersSpec, const O extends OutputSpec>(
  parts: ToolParts<P, ArgsOf<P>, ResultOf<O>> & { readonly output: OutputParts<ArgsOf<P>, O, ResultOf<O>> },
): ToolDefinition
export function defineTool(parts: unknown): ToolDefinition {
  const { name, description, parameters, output, ...rest } = parts as AnyParts
  const contract = toParametersContract(parameters, `parameters of tool "${name}"`)
  const { execute, finalizeContent, timeoutMs, deferred, isConcurrencySafe, effects, presentCall } = rest
  const { presentResult } = rest
  return {
    name,
    description,
    // Made when it is asked for: saying a zod schema in JSON costs time that a start does not have.
    get parameters() {
      return contract.schema
    },
    output: toOutput(output, name),
    async execute(args, exec) {
      const checked = await contract.check(args as JsonValue, 'arguments')
      if (checked.violations !== undefined) throw new ToolArgsError(checked.violations)
      return execute.call(parts, checked.value, exec)
    },
    ...(finalizeContent === undefined ? {} : { finalizeContent }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(deferred === undefined ? {} : { deferred }),
    ...(isConcurrencySafe === undefined
      ? {}
      : {
          isConcurrencySafe: args =>
            ifFitting(contract, args, value => isConcurrencySafe.call(parts, value)) === true,
        }),
    ...(effects === undefined
      ? {}
      : {
          async effects(args) {
            const checked = await contract.check(args as JsonValue, 'arguments')
            return checked.violations === undefined ? effects.call(parts, checked.value) : []
          },
        }),
    ...(presentCall === undefined
      ? {}
      : { presentCall: args => ifFitting(contract, args, value => presentCall.call(parts, value)) }),
    ...(presentResult === undefined
      ? {}
      : {
          presentResult: (args, result) =>
            ifFitting(contract, args, value => presentResult.call(parts, value, result)),
        }),
  }
}

/** What `use` makes of arguments that fit; undefined for others, and where it throws. */
function ifFitting<T>(contract: Contract, args: unknown, use: (value: unknown) => T): T | undefined {
  try {
    const checked = contract.check(args as JsonValue, 'arguments')
    if (checked instanceof Promise) {
      // Not known in time. Asking has started to load what is needed, so a later call will know.
      checked.catch(() => {})
      return undefined
    }
    return checked.violations === undefined ? use(checked.value) : undefined
  } catch {
    return undefined
  }
}

function toOutput(output: AnyParts['output'], name: string): ToolOutputDefinition {
  if (output === undefined) return textOutput
  if (output === 'content') return contentOutput
  const contract = toOutputContract(output.schema, `the output schema of tool "${name}"`)
  const { presentationMeta } = output
  return {
    get schema() {
      return contract.schema
    },
    validate: value => problemsOf(contract.check(value, 'value')),
    render: (args, value) => {
      const content = output.render(args, value)
      return typeof content === 'string' ? [{ type: 'text', text: content }] : content
    },
    ...(presentationMeta === undefined
      ? {}
      : { presentationMeta: (args, value) => presentationMeta.call(output, args, value) }),
  }
}

function problemsOf(checked: Checked | Promise<Checked>): readonly string[] | Promise<readonly string[]> {
  if (checked instanceof Promise) return checked.then(problemsOf)
  return checked.violations ?? []
}

const textOutput: ToolOutputDefinition = {
  schema: { type: 'string' },
  render: (_args, value) => [{ type: 'text', text: value as string }],
}

const contentOutput: ToolOutputDefinition = {
  schema: { type: 'array', items: { type: 'object' } },
  render: (_args, value) => toContent(value, 'value'),
}
