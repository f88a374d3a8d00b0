import { getSystemErrorMessage } from 'node:util'
import { FsError } from './errors.ts'
import type { FsErrorCode } from './errors.ts'

const codes: Readonly<Record<string, FsErrorCode>> = {
  ENOENT: 'FS_NOT_FOUND',
  ENOTDIR: 'FS_NOT_FOUND',
  EISDIR: 'FS_NOT_REGULAR_FILE',
  EACCES: 'FS_PERMISSION_DENIED',
  EPERM: 'FS_PERMISSION_DENIED',
  EROFS: 'FS_PERMISSION_DENIED',
  ERR_FS_FILE_TOO_LARGE: 'FS_TOO_LARGE',
  ABORT_ERR: 'FS_ABORTED',
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return typeof (error as { code?: unknown } | undefined)?.code === 'string'
}

export function hasCode(error: unknown, ...wanted: readonly string[]): boolean {
  return isSystemError(error) && wanted.includes(error.code ?? '')
}

/** What the system threw, as an `FsError` that says what could not be done; an `FsError` stays itself. */
export function toFsError(error: unknown, doing: string): FsError {
  if (error instanceof Error && error.name === 'FsError') return error as FsError
  const code = isSystemError(error) ? error.code : undefined
  const reason =
    isSystemError(error) && error.errno !== undefined ? getSystemErrorMessage(error.errno) : String(error)
  const named = code === undefined ? reason : `${reason} (${code})`
  return new FsError(codes[code ?? ''] ?? 'FS_IO_ERROR', `cannot ${doing}: ${named}`, { cause: error })
}

export function throwIfAborted(signal: AbortSignal | undefined, doing: string): void {
  if (signal?.aborted === true)
    throw new FsError('FS_ABORTED', `${doing} was cancelled`, { cause: signal.reason })
}
