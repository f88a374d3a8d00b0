import { messageOf } from '../../kernel/index.ts'
import { AnonymousEntries, NamedEntries, ScopedLayers } from '../scope/index.ts'
import { PromptError } from './errors.ts'
import type {
  AssembleContext,
  PromptContext,
  PromptPart,
  PromptSection,
  PromptText,
  PromptToolProvider,
  PromptVariable,
} from './prompt.ts'
import type { Variables } from './template.ts'

interface PromptLayer {
  readonly sections: NamedEntries<PromptSection>
  readonly contexts: NamedEntries<PromptContext>
  readonly variables: NamedEntries<PromptVariable>
  readonly tools: AnonymousEntries<PromptToolProvider>
  readonly suppressions: AnonymousEntries<true>
}

export type PromptLayers = ScopedLayers<PromptLayer>

/** What counts for one scope, before anything is evaluated. */
export interface PromptPlan {
  /** In their order; a complete one stands alone. */
  readonly sections: readonly PromptSection[]
  /** Two or more complete sections count at once. */
  readonly conflict: readonly string[] | undefined
  /** Empty where they are suppressed. */
  readonly contexts: readonly PromptContext[]
  readonly isSuppressed: boolean
  readonly variables: ReadonlyMap<string, PromptVariable>
  readonly tools: readonly PromptToolProvider[]
}

export function createPromptLayers(): PromptLayers {
  return new ScopedLayers<PromptLayer>(() => ({
    sections: new NamedEntries('section'),
    contexts: new NamedEntries('context'),
    variables: new NamedEntries('variable'),
    tools: new AnonymousEntries(),
    suppressions: new AnonymousEntries(),
  }))
}

export function planPrompt(layers: PromptLayers, scope: object | undefined): PromptPlan {
  const chain = layers.chainLayers(scope)
  const sections = inOrder(layers.merge(scope, layer => layer.sections))
  const complete = sections.filter(section => section.complete === true)
  const isSuppressed = chain.some(layer => layer.suppressions.size > 0)
  return {
    sections: complete.length === 0 ? sections : complete,
    conflict: complete.length > 1 ? complete.map(({ name }) => name) : undefined,
    contexts: isSuppressed ? [] : inOrder(layers.merge(scope, layer => layer.contexts)),
    isSuppressed,
    variables: layers.merge(scope, layer => layer.variables),
    tools: chain.flatMap(layer => [...layer.tools]),
  }
}

function inOrder<Part extends { readonly order: number }>(parts: ReadonlyMap<string, Part>): Part[] {
  return [...parts.values()].sort((a, b) => a.order - b.order)
}

/** The texts of `parts` for this assembly. Throws PROMPT_FAILED for the first that fails, once all are done. */
export async function evaluateParts(
  parts: readonly { readonly name: string; readonly text: PromptText; readonly verbatim?: boolean }[],
  kind: 'section' | 'context',
  context: AssembleContext,
): Promise<PromptPart[]> {
  const done = parts.map(async ({ name, text, verbatim }): Promise<PromptPart> => {
    const value = await evaluate(text, `${kind} "${name}"`, context)
    return verbatim === true ? { name, text: value, verbatim } : { name, text: value }
  })
  return settleAll(done)
}

export async function evaluateVariables(
  variables: ReadonlyMap<string, PromptVariable>,
  context: AssembleContext,
): Promise<Record<string, string | undefined>> {
  const done = [...variables].map(async ([name, provider]) => {
    const value = await attempt(() => provider(context), `variable "${name}"`, context)
    if (value === undefined || typeof value === 'string') return [name, value] as const
    throw new PromptError('PROMPT_FAILED', `variable "${name}" gave no text`)
  })
  return Object.fromEntries(await settleAll(done)) satisfies Variables
}

/** Runs a provider, and says whose fault it was. What an abort throws stays what it is. */
export async function attempt<T>(
  run: () => T | Promise<T>,
  name: string,
  context: AssembleContext,
): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (context.signal?.aborted === true) throw cause
    const message = messageOf(cause)
    throw new PromptError('PROMPT_FAILED', `${name} failed: ${message}`, { cause })
  }
}

async function evaluate(text: PromptText, name: string, context: AssembleContext): Promise<string> {
  if (typeof text === 'string') return text
  const value: unknown = await attempt(() => text(context), name, context)
  if (typeof value === 'string') return value
  throw new PromptError('PROMPT_FAILED', `${name} gave no text`)
}

async function settleAll<T>(jobs: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(jobs)
  return Promise.all(jobs)
}
