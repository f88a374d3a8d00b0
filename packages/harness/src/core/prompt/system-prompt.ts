import type { ToolSchema } from '@dsh/protocol'
import { adopt, isAdopted, Service } from '../../kernel/index.ts'
import type { ConfigSchema, Context, Disposer } from '../../kernel/index.ts'
import { announceChange, ScopedCache, scopeTarget } from '../scope/index.ts'
import { promptConfig } from './config.ts'
import type { SystemPromptConfig } from './config.ts'
import { PromptError } from './errors.ts'
import { attempt, createPromptLayers, evaluateParts, evaluateVariables, planPrompt } from './plan.ts'
import type { PromptLayers, PromptPlan } from './plan.ts'
import type {
  AssembleContext,
  PromptAssembly,
  PromptContext,
  PromptSection,
  PromptToolProvider,
  PromptVariable,
} from './prompt.ts'
import { renderParts } from './render.ts'
import { isVariableName } from './template.ts'
import { orderTools } from './tool-order.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    systemPrompt: SystemPrompt
  }
}

/** Who the model is, in one line. */
const identity =
  'You are an AI agent working in dsh, a harness that runs your tools and keeps a log of every step.'

export interface AssembleOptions {
  /** Leaves the runtime contexts out, for those who render them apart. */
  readonly contexts?: false
}

/**
 * What a request says besides its messages, as `ctx.systemPrompt`: sections, runtime contexts, variables and the order of
 * tools.
 *
 * What is registered through a scoped context counts for that scope and those below it, and hides what has the same name
 * farther out. Every registration tells `system-prompt/change`.
 */
export class SystemPrompt extends Service {
  static readonly Config: ConfigSchema<SystemPromptConfig | undefined, SystemPromptConfig> = promptConfig

  private readonly layers: PromptLayers
  private readonly plans: ScopedCache<object, PromptPlan>
  private readonly toolOrder: readonly string[] | undefined

  constructor(ctx: Context, config: SystemPromptConfig) {
    super(ctx, 'systemPrompt')
    this.layers = createPromptLayers()
    this.plans = new ScopedCache<object, PromptPlan>(this.layers, scope => planPrompt(this.layers, scope))
    this.toolOrder = config.toolOrder
    if (config.identity !== false) this.section({ name: 'harness:identity', order: -100, text: identity })
    const { persona } = config
    if (persona !== undefined) this.section({ name: 'deployment:persona', order: 0, text: persona })
  }

  /** Throws DUPLICATE_NAME where the layer has a section of that name. */
  section(section: PromptSection): Disposer {
    const kept = keep(section, 'section')
    return this.add(`section ${kept.name}`, layer => layer.sections.add(kept.name, kept))
  }

  context(context: PromptContext): Disposer {
    const kept = keep(context, 'context')
    return this.add(`context ${kept.name}`, layer => layer.contexts.add(kept.name, kept))
  }

  /** Keeps all runtime contexts from the caller's scope. */
  suppressRuntimeContext(): Disposer {
    return this.add('suppress contexts', layer => layer.suppressions.add(true))
  }

  /** Adds tools beside those of `ctx.tools`; of equal names the nearest, latest one counts. */
  tools(provider: PromptToolProvider): Disposer {
    return this.add('prompt tools', layer => layer.tools.add(provider))
  }

  /** Lets sections and contexts say `{{name}}`. Throws a TypeError unless the name is like `model_name`. */
  variable(name: string, provider: PromptVariable): Disposer {
    if (!isVariableName(name)) throw new TypeError(`"${name}" cannot be the name of a variable`)
    if (typeof provider !== 'function') throw new TypeError(`variable "${name}" has no provider`)
    return this.add(`variable ${name}`, layer => layer.variables.add(name, provider))
  }

  /**
   * Everything for one request, before variables are filled in; the caller may change what it gets. Listeners of
   * `system-prompt/assemble` have the last word, except over a complete section and suppressed contexts.
   */
  async assemble(context: AssembleContext = {}, options: AssembleOptions = {}): Promise<PromptAssembly> {
    const plan = this.plan(context)
    const contexts = options.contexts === false ? [] : plan.contexts
    const assembly: PromptAssembly = {
      sections: await evaluateParts(plan.sections, 'section', context),
      contexts: await evaluateParts(contexts, 'context', context),
      tools: await this.orderedTools(plan, context),
      variables: await evaluateVariables(plan.variables, context),
    }
    const complete =
      plan.sections[0]?.complete === true ? assembly.sections.map(part => ({ ...part })) : undefined
    const carrier = scopeTarget(context.scope)
    const given = await this.ctx.waterfall(
      carrier,
      'system-prompt/assemble',
      assembly,
      context,
      async () => assembly,
    )
    if ((given as PromptAssembly | undefined) === undefined) {
      throw new PromptError('PROMPT_FAILED', 'a system-prompt/assemble listener gave no assembly')
    }
    const { sections, contexts: kept, tools, variables } = given
    return { sections: complete ?? sections, contexts: plan.isSuppressed ? [] : kept, tools, variables }
  }

  /** The runtime contexts alone, filled in, blank ones left out. `system-prompt/assemble` does not see them. */
  async renderContexts(
    context: AssembleContext = {},
  ): Promise<readonly { readonly name: string; readonly text: string }[]> {
    const { contexts, variables } = this.plan(context)
    if (contexts.length === 0) return []
    const values = await evaluateVariables(variables, context)
    return renderParts(await evaluateParts(contexts, 'context', context), values, 'context')
  }

  private plan(context: AssembleContext): PromptPlan {
    const plan = this.plans.get(context.scope)
    if (plan.conflict === undefined) return plan
    const list = plan.conflict.map(name => `"${name}"`).join(' and ')
    throw new PromptError('COMPLETE_CONFLICT', `the sections ${list} each claim to stand alone`)
  }

  private async orderedTools(plan: PromptPlan, context: AssembleContext): Promise<ToolSchema[]> {
    const known = new Set<string>()
    const tools = new Map<string, ToolSchema>()
    const runtime = this.ctx.get('tools')
    const scope = context.scope ?? null
    if (runtime !== undefined) {
      for (const name of runtime.knownNames(scope)) known.add(name)
      for (const schema of runtime.schemas(scope)) tools.set(schema.name, schema)
      for (const schema of runtime.deferred(scope))
        if (context.offeredTools?.has(schema.name) === true) tools.set(schema.name, schema)
    }
    for (const provider of plan.tools) {
      const { schemas, knownNames = [] } = await attempt(() => provider(context), 'a tool provider', context)
      for (const name of knownNames) known.add(name)
      for (const schema of schemas) {
        known.add(schema.name)
        tools.set(schema.name, detach(schema))
      }
    }
    return orderTools(tools, { order: this.toolOrder, known, previous: context.previousTools })
  }

  private add(label: string, action: Parameters<PromptLayers['effect']>[2]): Disposer {
    return this.layers.effect(this.ctx, label, action, announceChange(this.ctx, 'system-prompt/change'))
  }
}

/** Nothing but what a model may see, frozen; the object itself where it is that already. */
function detach(schema: ToolSchema): ToolSchema {
  if (isAdopted(schema) && Object.keys(schema).length === 3) return schema
  const { name, description, parameters } = schema
  return adopt({ name, description, parameters })
}

/** Each part read once. Throws a TypeError for what could not be assembled later. */
function keep<Part extends PromptSection | PromptContext>(part: Part, kind: string): Part {
  const kept = Object.freeze({ ...part } as Part)
  const { name, order, text }: { name: unknown; order: number; text: unknown } = kept
  if (typeof name !== 'string' || name === '') throw new TypeError(`a ${kind} needs a name`)
  if (!Number.isFinite(order))
    throw new TypeError(`order of ${kind} "${name}" is ${order}, not a finite number`)
  if (typeof text !== 'string' && typeof text !== 'function')
    throw new TypeError(`${kind} "${name}" has no text`)
  return kept
}
