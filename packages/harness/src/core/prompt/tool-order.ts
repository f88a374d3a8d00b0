import type { ToolSchema } from '@dsh/protocol'
import { PromptError } from './errors.ts'

/** Where tools go that the configured order does not name. */
export const unlistedTools = '<unlisted-tools>'

/** Throws INVALID_TOOL_ORDER for repeated names and unless the marker is there. */
export function checkToolOrder(order: readonly string[]): void {
  const repeated = order.find((name, index) => order.indexOf(name) !== index)
  if (repeated !== undefined) throw invalid(`names "${repeated}" twice`)
  if (!order.includes(unlistedTools)) throw invalid(`lacks "${unlistedTools}"`)
}

/**
 * Tools in the configured order; those it does not name stand at its marker: first those of the last request, as they
 * stood there, then the others in code-unit order. Throws INVALID_TOOL_ORDER for a name that nobody knows.
 */
export function orderTools(
  tools: ReadonlyMap<string, ToolSchema>,
  options: {
    readonly order?: readonly string[] | undefined
    readonly known: ReadonlySet<string>
    readonly previous?: readonly string[] | undefined
  },
): ToolSchema[] {
  const { order = [unlistedTools], known, previous = [] } = options
  const listed = new Set(order)
  for (const name of order)
    if (name !== unlistedTools && !known.has(name)) throw invalid(`names no tool "${name}"`)
  const stayed = previous.filter(name => tools.has(name) && !listed.has(name))
  const before = new Set(stayed)
  const joined = [...tools.keys()].filter(name => !listed.has(name) && !before.has(name)).sort()
  const names = order.flatMap(name => (name === unlistedTools ? [...before, ...joined] : [name]))
  return names.flatMap(name => tools.get(name) ?? [])
}

function invalid(problem: string): PromptError {
  return new PromptError('INVALID_TOOL_ORDER', `the order of tools ${problem}`)
}
