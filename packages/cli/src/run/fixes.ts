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
      return sessionId && `${command} session ${isOfEvent(failure) ? 'fork' : 'repair'} ${sessionId}`
    case 'SESSION_HELD':
      return unlockFix(failure) ?? lookFix(context)
    case 'SESSION_READ_ONLY':
      return lookFix(context)
    case 'STORE_FAILED':
      return storeFix(errnoOf(failure), home)
    default:
      return undefined
  }
}

function lookFix({ command, sessionId }: FixContext): string {
  return sessionId === undefined ? `${command} session ls` : `${command} session show ${sessionId}`
}

/** Only a person knows who is behind a lock that names no program. */
function unlockFix(error: unknown): string | undefined {
  const locks = chainOf(error).map(one => (one as { lock?: unknown }).lock)
  const lock = locks.find(one => typeof one === 'string')
  return lock && `rm -r ${quoted(lock)}   # once no dsh works on it`
}

/** SQLite's code for a full disk. */
const sqliteFull = 13

/** Sound bytes hold an event that is not right: nothing is to be mended, but what comes before it can be gone on with. */
function isOfEvent(error: unknown): boolean {
  return chainOf(error).some(one => typeof (one as { seq?: unknown }).seq === 'number')
}

/** The system's word for what failed, from the error or what is behind it. */
export function errnoOf(error: unknown): string | undefined {
  for (const one of chainOf(error)) {
    const { code, errcode } = one as { code?: unknown; errcode?: unknown }
    if (typeof errcode === 'number' && (errcode & 0xff) === sqliteFull) return 'ENOSPC'
    if (typeof code === 'string' && /^E[A-Z0-9]+$/.test(code)) return code
  }
  return undefined
}

/** The error, and each that is behind the one before. */
function chainOf(error: unknown): readonly object[] {
  const chain: object[] = []
  for (let one = error; typeof one === 'object' && one !== null; one = (one as { cause?: unknown }).cause)
    chain.push(one)
  return chain
}

function storeFix(errno: string | undefined, home: string): string {
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return `df -h ${quoted(home)}`
  return `export DSH_HOME=…   # a folder that you may write, in place of ${home}`
}
