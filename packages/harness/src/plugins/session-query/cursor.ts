import { createHash } from 'node:crypto'
import { isFields } from '../../kernel/index.ts'
import { SessionQueryError } from './errors.ts'

/** What a cursor holds on to: which question, to which index, in which state. */
export interface CursorPlace {
  readonly request: unknown
  /** Tells this opening of the index from every other. */
  readonly nonce: string
  /** Of what the answer depends on. */
  readonly generation: string
}

export function cursorAt(place: CursorPlace, offset: number): string {
  const { nonce, generation } = place
  return Buffer.from(
    JSON.stringify({ r: hashOf(place.request), n: nonce, g: generation, o: offset }),
  ).toString('base64url')
}

/** Where the page of `cursor` begins. Throws INVALID_CURSOR for one of another question, STALE_CURSOR after a change. */
export function offsetOf(cursor: string | undefined, place: CursorPlace): number {
  if (cursor === undefined) return 0
  const { r, n, g, o } = read(cursor)
  if (typeof o !== 'number' || !Number.isSafeInteger(o) || o < 0 || r !== hashOf(place.request))
    throw new SessionQueryError('SESSION_QUERY_INVALID_CURSOR', 'the cursor is none of this question')
  if (n === place.nonce && g === place.generation) return o
  throw new SessionQueryError(
    'SESSION_QUERY_STALE_CURSOR',
    'what was searched has changed since the cursor was given; ask again without it',
  )
}

function read(cursor: string): { readonly [key: string]: unknown } {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return isFields(value) ? value : {}
  } catch {
    return {}
  }
}

function hashOf(request: unknown): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('base64url')
}
