import { placeOf } from '@dsh/harness/plugins/time-travel'
import type { LoggedRequest } from '@dsh/harness/plugins/time-travel'
import type { SessionView } from '@dsh/harness/session'
import { usageError } from '../errors.ts'
import { oneLine } from '../text.ts'

/** Whether `word` has the form of the number of an event: `19`, `#19` or `e19`. */
export function isSeqWord(word: string): boolean {
  return /^[#e]?\d+$/.test(word)
}

/** What `word` numbers, as `isSeqWord` has it; NaN for any other word. */
export function numberOf(word: string): number {
  return isSeqWord(word) ? Number(word.replace(/^\D/, '')) : Number.NaN
}

/** The event that `word` means, as `isSeqWord` has it. Throws a usage error for one that the session has not. */
export function seqOf(word: string, session: SessionView, command: string): number {
  const seq = numberOf(word)
  if (Number.isSafeInteger(seq) && seq < session.length) return seq
  const { id, length } = session
  const range = length === 0 ? 'it has none' : `it has 0 to ${length - 1}`
  const fix = length === 0 ? 'dsh session ls' : `${command} ${length - 1}`
  throw usageError('UNKNOWN_EVENT', `session ${id} has no event "${oneLine(word)}"; ${range}`, fix)
}

interface RequestPlace {
  readonly session: SessionView
  readonly requests: readonly LoggedRequest[]
  /** What to type before a place, for the way out of an error. */
  readonly command: string
}

/**
 * The request that `word` means: `2.1` the last attempt of that step, `2.1.1` a certain one, `3` the third of the
 * session, `#19` or `e19` the one that the event belongs to. Throws a usage error where there is none.
 */
export function requestOf(word: string, { session, requests, command }: RequestPlace): LoggedRequest {
  const event = /^[#e]\d+$/.test(word) ? seqOf(word, session, command) : undefined
  const found = requests.findLast(request =>
    event === undefined ? isNamed(request, word) : request.from <= event,
  )
  if (found !== undefined) return found
  const [first, last] = [requests[0], requests.at(-1)]
  const range =
    first === undefined || last === undefined
      ? 'nothing was asked in it'
      : `it has ${requests.length}: ${placeOf(first)} to ${placeOf(last)}`
  throw usageError(
    'UNKNOWN_REQUEST',
    `session ${session.id} has no request "${oneLine(word)}"; ${range}`,
    last === undefined ? `dsh session show ${session.id}` : `${command} ${placeOf(last)}`,
  )
}

function isNamed({ n, turn, step, attempt }: LoggedRequest, word: string): boolean {
  return word === `${n}` || word === `${turn}.${step}` || word === `${turn}.${step}.${attempt}`
}
