import { textOf } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { cutText } from '../../../core/tools/index.ts'
import { toJsonText } from '../../../kernel/index.ts'
import type { CodeResult } from '../service.ts'
import type { SubCall } from './sub-calls.ts'

const mostToldBytes = 2000
const mostTold = 10

/** What a model reads of a program that came to its end: what it printed, what it returned, and what it left lying. */
export function renderProgram(result: CodeResult, calls: readonly SubCall[]): string {
  const { logs, value } = result
  const printed = [
    ...(logs.length === 0 ? [] : [logs.join('\n')]),
    ...(value === undefined ? [] : [valueText(value)]),
  ]
  return [...(printed.length === 0 ? ['(no output)'] : printed), ...notes(result, calls)].join('\n')
}

/** The same of a program that failed. */
export function renderFailure(result: CodeResult, calls: readonly SubCall[]): string {
  const { logs, error } = result
  const failure = `the program failed (${error?.kind}): ${error?.message}`
  const printed = logs.length === 0 ? [] : ['[printed before]', ...logs]
  return [failure, ...printed, ...notes(result, calls)].join('\n')
}

function valueText(value: JsonValue): string {
  if (typeof value === 'string') return value
  try {
    return JSON.stringify(value, null, 2)
  } catch {
    // Too deep for the stack.
    return toJsonText(value)
  }
}

/** Where a program says nothing at all, nothing that it was told may be lost. */
function notes({ logs, value, error, unread = [] }: CodeResult, calls: readonly SubCall[]): string[] {
  const isSilent = logs.length === 0 && value === undefined && error === undefined
  const isTold = (call: SubCall, index: number): boolean =>
    !isCancelled(call) && (isSilent || call.isLate || unread.includes(index + 1))
  const told = calls.filter(isTold)
  const shown = told.filter((_, index) => index < mostTold)
  const rest = told.length - shown.length
  const cancelled = calls.filter(isCancelled).map(({ name }) => name)
  return [
    ...shown.map(call => `[${call.name} gave] ${cutText(resultText(call), mostToldBytes)}`),
    ...(rest > 0 ? [`[and ${rest} more results]`] : []),
    ...(cancelled.length === 0
      ? []
      : [`[cancelled, because the program ended without awaiting them: ${names(cancelled)}]`]),
  ]
}

function isCancelled({ result, isLate }: SubCall): boolean {
  if (result === undefined) return true
  return isLate && result.isError && (result.error.info?.code.startsWith('ABORTED') ?? false)
}

function resultText({ result }: SubCall): string {
  return textOf(result?.content ?? [])
}

function names(all: readonly string[]): string {
  const shown = all.filter((_, index) => index < mostTold).join(', ')
  return all.length > mostTold ? `${shown} and ${all.length - mostTold} more` : shown
}
