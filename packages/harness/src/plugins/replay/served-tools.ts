import type { ContentBlock, JsonValue, ToolSchema } from '@dsh/protocol'
import type { Context, Disposer } from '../../kernel/index.ts'
import type {
  ToolDefinition,
  ToolExecution,
  ToolExecutionFailure,
  ToolExecutionResult,
} from '../../core/tools/index.ts'
import type { ToolResult } from './tool-result.ts'

/** What a call is answered with in place of what its tool would do. */
export interface ServedResult extends ToolResult {
  /** The turn is over with it. */
  readonly concludes?: boolean
}

/** Asked once for each call of the model, in the order of the calls. */
export type Server = (exec: ToolExecution) => ServedResult

/**
 * Answers the calls of one agent from elsewhere; no body of a tool runs. The calls go through the whole pipeline, so the
 * log has all it has otherwise, and the model is offered the same tools.
 *
 * A tool is hidden by one of the same schema, since a result that was shown once is no value of the tool's own.
 */
export class ServedTools {
  readonly #ctx: Context
  readonly #server: Server
  readonly #results = new WeakMap<symbol, ServedResult>()
  readonly #hidden = new Map<string, { readonly definition: ToolDefinition; readonly show: Disposer }>()

  /** `ctx` is the agent's own. */
  constructor(ctx: Context, server: Server) {
    this.#ctx = ctx
    this.#server = server
    // Asked before policy: a call that is refused was answered too.
    ctx.on(
      'tools/pre-execute',
      async (exec, next) => {
        if (exec.parent === undefined) this.#resultOf(exec)
        return await next()
      },
      { prepend: true },
    )
    ctx.on('tools/execute', (exec, next) => this.#execute(exec, next), { prepend: true })
  }

  /** Hides what there is now. To be called again where tools may have come or gone. */
  hide(): void {
    const { tools } = this.#ctx
    for (const { name } of tools.schemas()) {
      const definition = tools.get(name, null)
      const known = this.#hidden.get(name)
      if (known !== undefined && known.definition === definition) continue
      known?.show()
      this.#hidden.delete(name)
      if (definition === undefined) continue
      this.#hidden.set(name, { definition, show: tools.register(this.#shadowOf(definition)) })
    }
  }

  /** Offers a tool that is not there, as a model was told of it. */
  offer(schema: ToolSchema): Disposer {
    return this.#ctx.tools.register(this.#shadowOf(schema))
  }

  #shadowOf(definition: ToolSchema & Pick<ToolDefinition, 'isConcurrencySafe'>): ToolDefinition {
    const { name, description } = definition
    const isConcurrencySafe = definition.isConcurrencySafe?.bind(definition)
    return {
      name,
      description,
      get parameters() {
        return definition.parameters
      },
      output: servedOutput,
      execute: (_args, exec) => {
        const { content, meta, concludes } = this.#resultOf(exec)
        if (concludes === true) exec.concludeTurn()
        return meta === undefined ? { content } : { content, meta }
      },
      ...(isConcurrencySafe === undefined ? {} : { isConcurrencySafe }),
    }
  }

  /** A failure is no value that a body gives; a call of a tool that is not there is answered all the same. */
  async #execute(
    exec: ToolExecution,
    next: () => Promise<ToolExecutionResult>,
  ): Promise<ToolExecutionResult> {
    if (exec.parent !== undefined) return await next()
    const served = this.#resultOf(exec)
    const result = await next()
    return served.isError ? failureOf(served) : result
  }

  #resultOf(exec: ToolExecution): ServedResult {
    const known = this.#results.get(exec.token)
    if (known !== undefined) return known
    const result = this.#server(exec)
    this.#results.set(exec.token, result)
    return result
  }
}

interface Shown {
  readonly content: readonly ContentBlock[]
  readonly meta?: JsonValue
}

const servedOutput: ToolDefinition['output'] = {
  schema: {},
  validate: () => [],
  render: (_args, value) => (value as unknown as Shown).content,
  presentationMeta: (_args, value) => (value as unknown as Shown).meta,
}

function failureOf({ content, error, meta }: ServedResult): ToolExecutionFailure {
  return {
    isError: true,
    error: {
      message: error?.reason ?? error?.code ?? 'failed',
      ...(error === undefined ? {} : { info: error }),
    },
    content,
    ...(meta === undefined ? {} : { meta }),
  }
}
