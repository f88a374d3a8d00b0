import { PersistenceError } from '../../persistence/index.ts'
import { errnoOf } from './file-system.ts'

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the device',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  EIO: 'the device failed',
  EMFILE: 'too many files are open',
  ENOENT: 'its file or folder is gone',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'a folder lies where a file should',
  ELOOP: 'links lead in a circle',
  ENAMETOOLONG: 'the path is too long',
}

/** Errors of the store stay; those of the system get a sentence, the session and the place. */
export function storeError(error: unknown, id: string, path: string, verb = 'stored'): unknown {
  if (error instanceof PersistenceError) return error
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const errno = errnoOf(first)
  if (errno === undefined && !(error instanceof AggregateError)) return error
  const reason = reasons[errno ?? ''] ?? (errno === undefined ? String(first) : (first as Error).message)
  return new PersistenceError('STORE_FAILED', `session "${id}" cannot be ${verb}: ${reason}: ${path}`, {
    cause: error,
  })
}
