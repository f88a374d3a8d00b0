import { wellFormed } from '../tools/index.ts'
import type { PromptAssembly, PromptPart } from './prompt.ts'
import { interpolate } from './template.ts'
import type { Variables } from './template.ts'

const contextPreamble = 'Current runtime context. It supersedes all earlier runtime context.'
const noContext = 'There is no runtime context any more. Disregard all earlier runtime context.'

/** The system text: each section filled in, empty ones left out. Throws INVALID_VARIABLE. */
export function renderPrompt(assembly: Pick<PromptAssembly, 'sections' | 'variables'>): string {
  const parts = renderParts(assembly.sections, assembly.variables, 'section')
  return wellFormed(parts.map(part => part.text).join('\n\n'))
}

/** What the model reads of the runtime contexts; with none, that the earlier ones are void. */
export function renderContextSnapshot(contexts: readonly { readonly text: string }[]): string {
  if (contexts.length === 0) return noContext
  return wellFormed([contextPreamble, ...contexts.map(({ text }) => text)].join('\n\n'))
}

/** Parts filled in, without those that are blank. */
export function renderParts(
  parts: readonly PromptPart[],
  variables: Variables,
  kind: 'section' | 'context',
): { readonly name: string; readonly text: string }[] {
  return parts
    .map(({ name, text, verbatim }) => ({
      name,
      text: verbatim === true ? text : interpolate(text, variables, `${kind} "${name}"`),
    }))
    .filter(({ text }) => text.trim() !== '')
}
