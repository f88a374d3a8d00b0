import { HarnessError } from '../../kernel/index.ts'

export type SessionQueryErrorCode =
  | 'SESSION_QUERY_ABORTED'
  /** The stored log cannot be read. */
  | 'SESSION_QUERY_CORRUPT_SESSION'
  | 'SESSION_QUERY_EVENT_NOT_FOUND'
  /** The index could not be opened, or belongs to something else. */
  | 'SESSION_QUERY_INDEX_FAILED'
  /** The cursor is of another request, or none of ours. */
  | 'SESSION_QUERY_INVALID_CURSOR'
  | 'SESSION_QUERY_INVALID_FILTER'
  | 'SESSION_QUERY_INVALID_LIMIT'
  | 'SESSION_QUERY_INVALID_QUERY'
  /** A session is its own ancestor. */
  | 'SESSION_QUERY_INVALID_LINEAGE'
  /** The model's view does not follow from the log. */
  | 'SESSION_QUERY_INVALID_SURFACE'
  | 'SESSION_QUERY_INVALID_WINDOW'
  | 'SESSION_QUERY_PERSISTENCE_FAILED'
  /** The plugin is configured without an index. */
  | 'SESSION_QUERY_SEARCH_DISABLED'
  | 'SESSION_QUERY_SESSION_NOT_FOUND'
  /** What was searched has changed since the cursor was given. */
  | 'SESSION_QUERY_STALE_CURSOR'
  /** The live session and the stored one disagree about their birth. */
  | 'SESSION_QUERY_SOURCE_CONFLICT'
  /** Of `asCaller` and the tools: not there, or not the caller's to read; nobody learns which. */
  | 'SESSION_QUERY_TOOL_UNAUTHORIZED'
  | 'SESSION_QUERY_TOOL_MISSING_AGENT'
  /** The caller is in no step, so what came before its question has no end. */
  | 'SESSION_QUERY_TOOL_NO_CURRENT_STEP'
  | 'SESSION_QUERY_TOOL_FAILED'

export class SessionQueryError extends HarnessError<SessionQueryErrorCode> {
  static {
    this.prototype.name = 'SessionQueryError'
  }
}

export function notFound(id: string): SessionQueryError {
  return new SessionQueryError('SESSION_QUERY_SESSION_NOT_FOUND', `there is no session "${id}"`)
}
