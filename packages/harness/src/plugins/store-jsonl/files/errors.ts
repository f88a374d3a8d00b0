import { PersistenceError, systemReason } from '../../persistence/index.ts'
import { errnoOf } from './file-system.ts'

/** Errors of the store stay; those of the system get a sentence, the session and the place. */
export function storeError(error: unknown, id: string, path: string, verb = 'stored'): unknown {
  if (error instanceof PersistenceError) return error
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const errno = errnoOf(first)
  if (errno === undefined && !(error instanceof AggregateError)) return error
  const reason = systemReason(errno ?? '') ?? (errno === undefined ? String(first) : (first as Error).message)
  return new PersistenceError('STORE_FAILED', `session "${id}" cannot be ${verb}: ${reason}: ${path}`, {
    cause: error,
  })
}
