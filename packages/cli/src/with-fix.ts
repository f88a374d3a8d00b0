import type { SessionId } from '@dsh/protocol'
import { CliError } from './errors.ts'
import { reportOf } from './report-error.ts'
import { fixFor } from './run/fixes.ts'
import type { Io } from './io.ts'

/** `error` with the command that mends it, where it has none of its own; `sessionId` is what was worked on. */
export function withFix(error: unknown, io: Io, sessionId = sessionIn(error)): unknown {
  const { code, message, exitCode, fix } = reportOf(error)
  if (fix !== undefined) return error
  const { command, home } = io
  const mending = fixFor({ code, cause: error }, { command, home, sessionId })
  return mending === undefined ? error : new CliError(code, message, { cause: error, exitCode, fix: mending })
}

/** The session that the store names in an error. */
function sessionIn(error: unknown): SessionId | undefined {
  return (error as { readonly sessionId?: SessionId } | null)?.sessionId
}
