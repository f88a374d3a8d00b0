import type { SessionId } from '@dsh/protocol'
import { messageOf } from '../../kernel/index.ts'
import { PersistenceError } from './errors.ts'
import type { Medium, ReadOptions, StoredLog } from './medium.ts'

const mostAttempts = 5

/**
 * `medium.read`, where damage that is seen while somebody writes is looked at again: a half of the log from before and a
 * half from after a write look like damage. Rejects with LOG_CHANGING where it cannot be told.
 */
export async function readSteadily(
  medium: Medium,
  id: SessionId,
  options: ReadOptions = {},
): Promise<StoredLog | undefined> {
  let before: string | undefined
  for (let attempt = 1; ; attempt += 1) {
    const found = await readOnce(medium, id, options)
    if (found === undefined || ('header' in found && found.gaps.length === 0)) return found
    const seen = 'header' in found ? found.revision : before
    before = await medium.revision(id)
    const isSteady = seen !== undefined && seen === before
    if ('header' in found) {
      if (isSteady || attempt >= mostAttempts) return found
    } else if (isSteady) throw found
    else if (attempt >= mostAttempts) throw changing(id, found)
  }
}

/** The log, or the error that says that it has none. */
async function readOnce(
  medium: Medium,
  id: SessionId,
  options: ReadOptions,
): Promise<StoredLog | PersistenceError | undefined> {
  try {
    return await medium.read(id, options)
  } catch (error) {
    if (error instanceof PersistenceError && error.code === 'SESSION_DAMAGED') return error
    throw error
  }
}

function changing(id: SessionId, cause: PersistenceError): PersistenceError {
  return new PersistenceError(
    'LOG_CHANGING',
    `the log of session "${id}" changed during each of ${mostAttempts} reads: ${messageOf(cause)}`,
    { cause },
  )
}
