import type { ToolSchema } from '@dsh/protocol'
import { Service } from '../../kernel/index.ts'
import type { Context, Disposer } from '../../kernel/index.ts'
import { announceChange } from '../scope/index.ts'
import { ToolCall } from './call.ts'
import type { ToolEffect } from './effect.ts'
import { ToolError } from './errors.ts'
import { codeToolName, RegisteredTool } from './registered.ts'
import { isParallel, scopeOfCall, ToolRegistry } from './registry.ts'
import type {
  ToolDefinition,
  ToolExecutionInput,
  ToolExecutionMode,
  ToolExecutionResult,
  ToolGuard,
  ToolPresentation,
  ToolRestriction,
} from './tool.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    tools: ToolRuntime
  }
}

const presentations: readonly string[] = ['native', 'code', 'both'] satisfies ToolPresentation[]

/**
 * The tools a model may call, as `ctx.tools`.
 *
 * What is registered through a scoped context counts for that scope and those below it. Where a `scope` may be given, it
 * defaults to the caller's own;
 * null stands for what counts for everybody.
 */
export class ToolRuntime extends Service {
  private readonly registry: ToolRegistry

  constructor(ctx: Context) {
    super(ctx, 'tools')
    this.registry = new ToolRegistry((error, where) => ctx.fiber.report(error, where))
  }

  /** Throws DUPLICATE_NAME where the layer has the name, INVALID_TOOL or INVALID_SCHEMA for what could not be used. */
  register(definition: ToolDefinition): Disposer {
    const tool = new RegisteredTool(definition)
    if (tool.name === codeToolName)
      throw new ToolError('INVALID_TOOL', `the name "${codeToolName}" is reserved`)
    return this.add(tool)
  }

  /** Registers the composite under its reserved name `run_code`; it is offered where `presentAs` says so. */
  transport(definition: ToolDefinition): Disposer {
    const tool = new RegisteredTool(definition)
    if (tool.name !== codeToolName) {
      throw new ToolError('INVALID_TOOL', `the composite is named "${codeToolName}", not "${tool.name}"`)
    }
    return this.add(tool)
  }

  /**
   * Narrows what the caller's scope inherits, never its own tools; several restrictions intersect. `allow` keeps later
   * tools out, `deny` alone lets them in. Throws INVALID_TOOL outside of a scope and for names that are not inherited.
   */
  restrict(restriction: ToolRestriction): Disposer {
    const { scope } = this.ctx
    if (scope === undefined) throw new ToolError('INVALID_TOOL', 'only a scoped context can restrict tools')
    const admits = this.registry.compileRestriction(restriction, scope)
    const change = announceChange(this.ctx, 'tools/change')
    return this.registry.layers.effect(
      this.ctx,
      'restrict tools',
      layer => layer.restrictions.add(admits),
      change,
    )
  }

  /** Adds a reason to refuse calls, for everybody or for the caller's scope. */
  guard(guard: ToolGuard): Disposer {
    return this.registry.layers.effect(this.ctx, 'guard tools', layer => layer.guards.add(guard))
  }

  /** How tools are offered in the caller's scope; the nearest, latest word counts. Other than native needs the composite. */
  presentAs(presentation: ToolPresentation): Disposer {
    const { scope } = this.ctx
    if (!presentations.includes(presentation)) {
      throw new ToolError('INVALID_TOOL', `tools cannot be presented as ${JSON.stringify(presentation)}`)
    }
    if (presentation !== 'native' && this.registry.view(scope).composite === undefined) {
      throw new ToolError('INVALID_TOOL', `nobody provides "${codeToolName}"`)
    }
    const change = announceChange(this.ctx, 'tools/change')
    return this.registry.layers.effect(
      this.ctx,
      'present tools',
      layer => layer.presentations.add(presentation),
      change,
    )
  }

  /** The very definition that was registered, where the scope sees it. */
  get(name: string, scope: object | null | undefined = this.ctx.scope): ToolDefinition | undefined {
    const { tools, composite, presentation } = this.registry.view(scope ?? undefined)
    const tool = name === codeToolName && presentation !== 'native' ? composite : tools.get(name)
    return tool?.definition
  }

  /** What a model is offered from the beginning, in code-unit order of names: frozen, and the same objects until something changes. */
  schemas(scope: object | null | undefined = this.ctx.scope): readonly ToolSchema[] {
    return this.registry.view(scope ?? undefined).schemas
  }

  /** Of the tools that a model is offered only once they were asked for, likewise. */
  deferred(scope: object | null | undefined = this.ctx.scope): readonly ToolSchema[] {
    return this.registry.view(scope ?? undefined).deferred
  }

  /** Every name registered for the scope, restricted or not. */
  knownNames(scope: object | null | undefined = this.ctx.scope): ReadonlySet<string> {
    return this.registry.view(scope ?? undefined).known
  }

  /** Whether a call may run beside others: only if its tool's classifier says exactly true. */
  executionMode(call: Pick<ToolExecutionInput, 'name' | 'arguments' | 'parent'>): ToolExecutionMode {
    const { name, arguments: args, parent } = call
    const tool = this.registry.find({ name, scope: scopeOfCall(call), isNested: parent !== undefined })
    return isParallel(tool, args) ? 'parallel' : 'exclusive'
  }

  /** What a call would do to the world; nothing where there is no such tool. Rejects where the tool cannot tell. */
  async effectsOf(
    call: Pick<ToolExecutionInput, 'name' | 'arguments' | 'parent'>,
  ): Promise<readonly ToolEffect[]> {
    const { name, arguments: args, parent } = call
    const tool = this.registry.find({ name, scope: scopeOfCall(call), isNested: parent !== undefined })
    return (await tool?.definition.effects?.(args)) ?? []
  }

  /** Begins a call whose stages the caller runs. */
  open(input: ToolExecutionInput): ToolCall {
    return new ToolCall(this.ctx, this.registry, input)
  }

  /** Runs a whole call. Never rejects: whatever goes wrong is a result. */
  async execute(input: ToolExecutionInput): Promise<ToolExecutionResult> {
    const call = this.open(input)
    await call.prepare()
    await call.dispatch()
    return call.finish()
  }

  private add(tool: RegisteredTool): Disposer {
    const change = announceChange(this.ctx, 'tools/change')
    const label = `tool ${tool.name}`
    return this.registry.layers.effect(this.ctx, label, layer => layer.tools.add(tool.name, tool), change)
  }
}
