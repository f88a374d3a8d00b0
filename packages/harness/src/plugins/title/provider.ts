import { isCount, isFields, isText } from '../../kernel/index.ts'
import type { Session } from '../../core/session/index.ts'
import { TitleError } from './errors.ts'
import type { TitleMessage } from './state.ts'

export interface TitleRoute {
  readonly provider: string
  readonly model: string
}

export interface TitleRequest {
  readonly session: Session
  readonly messages: readonly TitleMessage[]
  /** Where the session's own requests go. */
  readonly route?: TitleRoute | undefined
  readonly signal: AbortSignal
}

export interface ProvidedTitle {
  readonly title: string
  /** The messages it is made of: some of those that were given, in order. */
  readonly messageSeqs: readonly number[]
  readonly model?: TitleRoute | undefined
}

/** Makes titles from what people wrote. */
export interface TitleProvider {
  readonly id: string
  /** When it is asked without anybody asking: after the first prompt of a session, or after each. */
  readonly automatic: 'first-prompt' | 'all-prompts'
  generate(request: TitleRequest): Promise<ProvidedTitle>
}

/** Throws INVALID_PROVIDER. */
export function checkProvider({ id, automatic, generate }: TitleProvider): void {
  if (!isText(id)) throw new TitleError('INVALID_PROVIDER', 'a title provider has an id')
  const isKnown = automatic === 'first-prompt' || automatic === 'all-prompts'
  if (!isKnown)
    throw new TitleError('INVALID_PROVIDER', `automatic of title provider "${id}" is ${String(automatic)}`)
  if (typeof generate !== 'function')
    throw new TitleError('INVALID_PROVIDER', `title provider "${id}" has no generate function`)
}

/** What a provider gave. Throws INVALID_TITLE where it is no title of these messages. */
export function checkProvided(
  given: unknown,
  { id }: TitleProvider,
  messages: readonly TitleMessage[],
): ProvidedTitle {
  const bad = (problem: string): TitleError =>
    new TitleError('INVALID_TITLE', `title provider "${id}" gave ${problem}`)
  if (!isFields(given) || !isText(given['title'])) throw bad('no title')
  const { messageSeqs } = given
  if (!Array.isArray(messageSeqs) || messageSeqs.length === 0 || !messageSeqs.every(isCount))
    throw bad('a title of no messages')
  const asked = messages.map(({ seq }) => seq)
  const places = messageSeqs.map(seq => asked.indexOf(seq))
  if (places.includes(-1)) throw bad(`a title of messages it was not asked about: ${messageSeqs.join(', ')}`)
  if (places.some((place, at) => at > 0 && place <= (places[at - 1] ?? 0)))
    throw bad(`messages out of order: ${messageSeqs.join(', ')}`)
  return given as unknown as ProvidedTitle
}
