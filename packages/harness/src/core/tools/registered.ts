import type { ContentBlock, JsonValue, ToolSchema } from '@dsh/protocol'
import { adopt, MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import { compileCheck } from './check.ts'
import { joinProblems, ToolError, ToolOutputError } from './errors.ts'
import { success, toContent } from './result.ts'
import { toJsonSchema } from './schema.ts'
import { readThrown } from './thrown.ts'
import type { ToolDefinition, ToolExecutionSuccess, ToolOutputDefinition, ToolRunContext } from './tool.ts'

/** Named for the composite that runs programs; see `ToolRuntime.transport`. */
export const codeToolName = 'run_code'

const validName = /^[\w-]{1,64}$/

type Validate = (value: JsonValue) => readonly string[] | Promise<readonly string[]>

/** One tool as it was at registration: each part read once, and checked. */
export class RegisteredTool {
  readonly definition: ToolDefinition
  readonly name: string
  readonly isDeferred: boolean
  readonly finalizeContent: ToolDefinition['finalizeContent']
  readonly isConcurrencySafe: ToolDefinition['isConcurrencySafe']
  readonly #execute: ToolDefinition['execute']
  readonly #output: Pick<ToolOutputDefinition, 'render' | 'presentationMeta'>
  readonly #validate: Validate
  readonly #description: string
  #schema: ToolSchema | undefined

  /** Throws INVALID_TOOL or a JsonSchemaError for what could not be used later. */
  constructor(definition: ToolDefinition) {
    const { name, description, execute, output, finalizeContent, timeoutMs, isConcurrencySafe } = definition
    if (typeof name !== 'string' || !validName.test(name)) {
      throw invalid(`the tool name ${JSON.stringify(name)} is not 1 to 64 letters, digits, "_" and "-"`)
    }
    if (typeof description !== 'string') throw invalid(`tool "${name}" has no description`)
    if (typeof execute !== 'function') throw invalid(`tool "${name}" has no execute function`)
    if (typeof output?.render !== 'function')
      throw invalid(`tool "${name}" has no output with a render function`)
    if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= MAX_TIMER_DELAY_MS)) {
      throw invalid(`timeoutMs of tool "${name}" is ${timeoutMs}, not between 0 and ${MAX_TIMER_DELAY_MS}`)
    }
    this.definition = definition
    this.name = name
    this.isDeferred = definition.deferred === true
    this.#description = description
    this.#execute = execute
    this.finalizeContent = finalizeContent?.bind(definition)
    this.isConcurrencySafe = isConcurrencySafe?.bind(definition)
    this.#output = { render: output.render.bind(output) }
    const { presentationMeta } = output
    if (presentationMeta !== undefined) this.#output.presentationMeta = presentationMeta.bind(output)
    this.#validate = validateOf(output, name)
    // A getter is how a definition says that its schema is made only when it is asked for.
    if (Object.getOwnPropertyDescriptor(definition, 'parameters')?.get === undefined) void this.schema
  }

  /** What a model is told; frozen, and always the same object. */
  get schema(): ToolSchema {
    if (this.#schema !== undefined) return this.#schema
    const { name } = this
    const { parameters } = this.definition
    if (typeof parameters !== 'object' || parameters === null)
      throw invalid(`tool "${name}" has no parameters`)
    this.#schema = adopt<ToolSchema>({ name, description: this.#description, parameters }, `tool "${name}"`)
    return this.#schema
  }

  execute(args: JsonValue, exec: ToolRunContext): unknown {
    return this.#execute.call(this.definition, args, exec)
  }

  /**
   * The result that `value` means. Throws a ToolOutputError for what JSON does not keep, what the declaration does not
   * allow, and what cannot be rendered.
   */
  async toSuccess(
    value: unknown,
    call: { readonly args: JsonValue; readonly isNested: boolean; readonly concludes: boolean },
  ): Promise<ToolExecutionSuccess> {
    const { args, isNested, concludes } = call
    const snapshot = this.#guard('the value', () => adopt(value, 'value')) as JsonValue
    const problems = await this.#validate(snapshot)
    if (problems.length > 0) throw new ToolOutputError(this.name, joinProblems(problems))
    const content = this.#render(args, snapshot)
    // Only what the log keeps as a result of its own has use for it.
    const meta = isNested ? undefined : this.#meta(args, snapshot)
    return success({ value: snapshot, content, meta, concludes })
  }

  #render(args: JsonValue, value: JsonValue): readonly ContentBlock[] {
    return this.#guard('render', () => toContent(this.#output.render(args, value), 'content'))
  }

  #meta(args: JsonValue, value: JsonValue): JsonValue | undefined {
    return this.#guard('presentationMeta', () => {
      const meta = this.#output.presentationMeta?.(args, value)
      return meta === undefined ? undefined : adopt(meta, 'meta')
    })
  }

  #guard<T>(what: string, make: () => T): T {
    try {
      return make()
    } catch (cause) {
      throw new ToolOutputError(this.name, `${what}: ${readThrown(cause).message}`, { cause })
    }
  }
}

function validateOf(output: ToolOutputDefinition, name: string): Validate {
  const { validate } = output
  if (validate !== undefined) return validate.bind(output)
  const check = compileCheck(toJsonSchema(output.schema, `the output schema of tool "${name}"`))
  return value => check(value, 'value')
}

function invalid(message: string): ToolError {
  return new ToolError('INVALID_TOOL', message)
}
