import type { ToolSchema } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import { AnonymousEntries, NamedEntries, ScopedCache, ScopedLayers } from '../scope/index.ts'
import { ToolError, ToolNotFoundError } from './errors.ts'
import { unknownToolText } from './near.ts'
import { codeToolName } from './registered.ts'
import type { RegisteredTool } from './registered.ts'
import type { ToolExecution, ToolGuard, ToolPresentation, ToolRestriction } from './tool.ts'

interface ToolLayer {
  readonly tools: NamedEntries<RegisteredTool>
  readonly restrictions: AnonymousEntries<(name: string) => boolean>
  readonly guards: AnonymousEntries<ToolGuard>
  readonly presentations: AnonymousEntries<ToolPresentation>
}

/** What one scope sees. */
interface View {
  /** After restrictions, without the composite. */
  readonly tools: ReadonlyMap<string, RegisteredTool>
  readonly composite: RegisteredTool | undefined
  /** Everything registered for the scope, restricted or not. */
  readonly known: ReadonlySet<string>
  readonly presentation: ToolPresentation
  readonly schemas: readonly ToolSchema[]
  /** Of tools that a model is offered only once they were asked for. */
  readonly deferred: readonly ToolSchema[]
}

/** The part of a call that decides which tool it means. */
export interface ToolAddress {
  readonly name: string
  readonly scope: object | undefined
  /** Made by a tool, not by a model. */
  readonly isNested: boolean
}

/** Who registered what, and what each scope sees of it. */
export class ToolRegistry {
  readonly layers = new ScopedLayers<ToolLayer>(() => ({
    tools: new NamedEntries('tool'),
    restrictions: new AnonymousEntries(),
    guards: new AnonymousEntries(),
    presentations: new AnonymousEntries(),
  }))
  readonly #views = new ScopedCache(this.layers, scope => this.#view(scope))
  readonly #report: (error: unknown, where: string) => void

  /** `report` hears of tools that had to be left out. */
  constructor(report: (error: unknown, where: string) => void) {
    this.#report = report
  }

  view(scope: object | undefined): View {
    return this.#views.get(scope)
  }

  find({ name, scope, isNested }: ToolAddress): RegisteredTool | undefined {
    const { tools, composite, presentation } = this.view(scope)
    if (name === codeToolName) return isNested || presentation === 'native' ? undefined : composite
    return presentation === 'code' && !isNested ? undefined : tools.get(name)
  }

  /** Throws UNKNOWN_TOOL. */
  require(address: ToolAddress): RegisteredTool {
    const tool = this.find(address)
    if (tool === undefined) throw this.notFound(address)
    return tool
  }

  /** Whether the tool is there, but only programs may call it. */
  isProgramOnly({ name, scope, isNested }: ToolAddress): boolean {
    const { tools, presentation } = this.view(scope)
    return presentation === 'code' && !isNested && tools.has(name)
  }

  notFound(address: ToolAddress): ToolNotFoundError {
    const { name, scope, isNested } = address
    if (this.isProgramOnly(address)) {
      return new ToolNotFoundError(`tool "${name}" can be called from a program only: call ${codeToolName}`)
    }
    const { tools, schemas, deferred } = this.view(scope)
    const names = isNested ? [...tools.keys()].sort() : [...schemas, ...deferred].map(schema => schema.name)
    return new ToolNotFoundError(unknownToolText(name, names))
  }

  /** The first reason to refuse: the guards of everybody first, then from the farthest scope to the nearest. */
  denial(execution: ToolExecution, scope: object | undefined): string | undefined {
    for (const layer of this.layers.chainLayers(scope)) {
      for (const guard of layer.guards) {
        const reason: unknown = guard(execution)
        if (reason === undefined) continue
        if (typeof reason === 'string') return reason
        throw new TypeError('a tool guard gave neither a reason nor undefined')
      }
    }
    return undefined
  }

  /** Throws INVALID_TOOL unless each name is one that `scope` inherits. */
  compileRestriction(restriction: ToolRestriction, scope: object): (name: string) => boolean {
    const { allow, deny } = restriction
    if (allow === undefined && (deny === undefined || deny.length === 0)) {
      throw new ToolError('INVALID_TOOL', 'a restriction without names restricts nothing')
    }
    const own = this.layers.layerOf(scope)
    const inherited = new Set<string>()
    for (const layer of this.layers.chainLayers(scope)) {
      if (layer !== own) for (const [name] of layer.tools) inherited.add(name)
    }
    inherited.delete(codeToolName)
    const wrong = [...(allow ?? []), ...(deny ?? [])].filter(name => !inherited.has(name))
    if (wrong.length > 0) {
      const list = wrong.map(name => JSON.stringify(name)).join(', ')
      throw new ToolError('INVALID_TOOL', `a restriction names ${list}, which the scope does not inherit`)
    }
    const allowed = allow === undefined ? undefined : new Set(allow)
    const denied = new Set(deny)
    return name => allowed?.has(name) !== false && !denied.has(name)
  }

  #view(scope: object | undefined): View {
    const tools = new Map<string, RegisteredTool>()
    const known = new Set<string>()
    let composite: RegisteredTool | undefined
    let wanted: ToolPresentation = 'native'
    for (const layer of this.layers.chainLayers(scope)) {
      // A layer restricts what it inherits; its own tools come after.
      for (const admits of layer.restrictions) drop(tools, name => !admits(name))
      for (const [name, tool] of layer.tools) {
        known.add(name)
        if (name === codeToolName) composite = tool
        else tools.set(name, tool)
      }
      for (const presentation of layer.presentations) wanted = presentation
    }
    const presentation = composite === undefined ? 'native' : wanted
    const native = presentation === 'code' ? [] : [...tools.values()]
    const offered = native.filter(tool => !tool.isDeferred)
    if (composite !== undefined && presentation !== 'native') offered.push(composite)
    const deferred = this.#schemas(native.filter(tool => tool.isDeferred))
    return { tools, composite, known, presentation, schemas: this.#schemas(offered), deferred }
  }

  /** In code-unit order. A tool whose schema fails is left out, and the others stay. */
  #schemas(tools: readonly RegisteredTool[]): readonly ToolSchema[] {
    const schemas: ToolSchema[] = []
    for (const tool of tools) {
      try {
        schemas.push(tool.schema)
      } catch (error) {
        this.#report(error, `schema of tool "${tool.name}"`)
      }
    }
    return Object.freeze(schemas.sort((a, b) => (a.name < b.name ? -1 : 1)))
  }
}

function drop(tools: Map<string, unknown>, isOut: (name: string) => boolean): void {
  for (const name of tools.keys()) if (isOut(name)) tools.delete(name)
}

/** The scope of a call is its agent, which only higher layers know by type. */
export function scopeOfCall(call: object): object | undefined {
  const { agent } = call as { readonly agent?: unknown }
  return typeof agent === 'object' && agent !== null ? agent : undefined
}

/** What a classifier says of a copy of the arguments; only the exact answer true counts. */
export function isParallel(tool: RegisteredTool | undefined, args: unknown): boolean {
  try {
    return tool?.isConcurrencySafe?.(adopt(args === undefined ? {} : args, 'arguments')) === true
  } catch {
    return false
  }
}
