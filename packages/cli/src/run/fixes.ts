import { quoted } from '../errors.ts'

/** What a fix may name. */
export interface FixContext {
  /** How dsh is typed. */
  readonly command: string
  readonly home: string
  readonly sessionId?: string | undefined
  /** The variable that holds the key in use. */
  readonly keyEnv?: string | undefined
}

interface Failure {
  readonly code: string
  readonly cause?: unknown
}

/** The commands that mend a failure, one a line; undefined where nothing but another try helps. */
export function fixFor(failure: Failure, context: FixContext): string | undefined {
  const { command, home, sessionId, keyEnv } = context
  switch (failure.code) {
    case 'AUTH':
    case 'INVALID_CREDENTIAL':
    case 'MISSING_CREDENTIAL':
      return keyEnv === undefined ? `${command} models` : `export ${keyEnv}='…'`
    case 'UNKNOWN_MODEL':
      return `${command} models`
    case 'CONTEXT_WINDOW_EXCEEDED':
      return `${command} run "…"   # a new session, with a shorter task`
    case 'SESSION_FORMAT_NEWER':
      return 'npm install -g dsh@latest'
    case 'SESSION_DAMAGED':
      return sessionId && `${command} session repair ${sessionId}`
    case 'SESSION_HELD':
    case 'SESSION_READ_ONLY':
      return sessionId && `${command} session show ${sessionId}`
    case 'STORE_FAILED':
      return storeFix(errnoOf(failure), home)
    default:
      return undefined
  }
}

/** SQLite's code for a full disk. */
const sqliteFull = 13

/** The system's word for what failed, from the error or what is behind it. */
function errnoOf(error: unknown): string | undefined {
  for (let one = error; typeof one === 'object' && one !== null; one = (one as { cause?: unknown }).cause) {
    const { code, errcode } = one as { code?: unknown; errcode?: unknown }
    if (typeof errcode === 'number' && (errcode & 0xff) === sqliteFull) return 'ENOSPC'
    if (typeof code === 'string' && /^E[A-Z0-9]+$/.test(code)) return code
  }
  return undefined
}

function storeFix(errno: string | undefined, home: string): string {
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return `df -h ${quoted(home)}`
  return `export DSH_HOME=…   # a folder that you may write, in place of ${home}`
}
