import { exitCode } from './errors.ts'
import { failedResult } from './run/outcome.ts'
import { inert } from './text.ts'
import type { Io } from './io.ts'

/** What is told of anything that was thrown. */
export interface ErrorReport {
  readonly code: string
  readonly message: string
  readonly exitCode: number
  readonly fix?: string
}

/**
 * Tells the person what went wrong before any turn began, in the one form all errors have, and gives the exit code.
 * With `json` standard output gets its last line as well.
 */
export function reportError(error: unknown, io: Io, options: { readonly json: boolean }): number {
  const report = reportOf(error)
  if (options.json) io.out.line(JSON.stringify(failedResult(report)))
  io.err.write(errorLines(report))
  if (report.code === 'INTERNAL' && io.env.DSH_DEBUG !== undefined)
    io.err.line(inert(String((error as Error).stack)))
  return report.exitCode
}

export function errorLines({ code, message, fix }: ErrorReport): string {
  const lines = [`error ${code}: ${inert(message)}`, ...(fix ?? '').split('\n').filter(Boolean).map(inert)]
  return `${lines.join('\n  ')}\n`
}

export function reportOf(thrown: unknown): ErrorReport {
  // Of several at once the first tells what happened; the others came of it.
  const error: unknown = thrown instanceof AggregateError ? (thrown.errors[0] ?? thrown) : thrown
  const { code, message, exitCode: exit, fix } = error as Partial<ErrorReport>
  const text = typeof message === 'string' && message !== '' ? message : String(error)
  return {
    code: typeof code === 'string' ? code : 'INTERNAL',
    message: text,
    exitCode: typeof exit === 'number' ? exit : exitCode.failed,
    ...(typeof fix === 'string' ? { fix } : {}),
  }
}
