import type { SessionId } from '@dsh/protocol'
import { SessionForkError } from './errors.ts'
import type { Session } from './log.ts'
import { turnCursor } from './turns.ts'

export interface ForkOptions {
  /** What to do where the boundary lies inside a turn: refuse, or end that turn in the child. */
  readonly openTurn?: 'reject' | 'close'
}

/** A detached child with the events 0…`boundary` of `source`. Throws INVALID_BOUNDARY or OPEN_TURN. */
export function branchAt(
  source: Session,
  boundary: number | undefined,
  childId: SessionId,
  options: ForkOptions,
): Session {
  const length = boundary === undefined ? source.length : boundary + 1
  if (boundary !== undefined && (!Number.isSafeInteger(boundary) || boundary < 0 || length > source.length)) {
    throw new SessionForkError('INVALID_BOUNDARY', `session "${source.id}" has no event ${boundary}`)
  }
  const { openTurn } = source.fold(turnCursor, { before: length })
  const closeTurn = openTurn !== undefined && options.openTurn === 'close'
  if (openTurn !== undefined && !closeTurn) {
    throw new SessionForkError(
      'OPEN_TURN',
      `turn ${openTurn} of session "${source.id}" is open at event ${length - 1}`,
    )
  }
  const { cwd } = source.header
  const meta = { parentSession: source.id, seedLength: length, ...(cwd === undefined ? {} : { cwd }) }
  return source.branch(childId, length, { meta, closeTurn })
}
