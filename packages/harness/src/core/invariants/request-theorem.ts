import type { EpochHeader, Message, SessionEvent } from '@dsh/protocol'
import { isAdopted } from '../../kernel/index.ts'
import type { GenerateOptions } from '../llm/index.ts'
import { deriveEventMessage, foldRequestHeader, foldSurface } from '../session/index.ts'

/** The parts a loop's request is made of. */
export interface RequestParts {
  readonly header: EpochHeader | undefined
  readonly messages: readonly Message[]
}

/** The same from a log alone. `events` is everything up to the moment the request was sent. */
export function rebuildRequest(events: readonly SessionEvent[]): RequestParts {
  const messages: Message[] = []
  for (const seq of foldSurface(events).nodes) {
    const event = events[seq]
    const message = event === undefined ? null : deriveEventMessage(event)
    if (message !== null) messages.push(message)
  }
  return { header: foldRequestHeader(events), messages }
}

/** What is in `request` and not in the log, or the other way round, or could still be changed. Undefined = nothing. */
export function requestMismatch(request: GenerateOptions, parts: RequestParts): string | undefined {
  const { header, messages } = parts
  if (header === undefined) return 'the log has no request header'
  const { messages: sent, sessionId: _session, signal: _signal, ...envelope } = request
  const { config, system, tools } = header
  const expected = {
    ...config,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
  }
  return (
    envelopeMismatch(envelope, expected) ??
    historyMismatch(sent, messages) ??
    (isDeepFrozen({ ...envelope, messages: sent }) && Object.isFrozen(request)
      ? undefined
      : 'the request is not deeply frozen')
  )
}

function envelopeMismatch(
  sent: Readonly<Record<string, unknown>>,
  logged: Readonly<Record<string, unknown>>,
): string | undefined {
  const keys = new Set([...Object.keys(sent), ...Object.keys(logged)])
  const wrong = [...keys].find(key => !isSame(sent[key], logged[key]))
  return wrong === undefined ? undefined : `${wrong} of the request is not that of the last header`
}

function historyMismatch(sent: readonly Message[], logged: readonly Message[]): string | undefined {
  if (sent === logged) return undefined
  if (sent.length !== logged.length)
    return `the request has ${sent.length} messages, the log has ${logged.length}`
  const wrong = sent.findIndex((message, at) => !isSame(message, logged[at]))
  return wrong < 0 ? undefined : `message ${wrong} of the request is not that of the log`
}

/** Byte for byte; parts that are the same object need no look. */
function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function isDeepFrozen(parts: object): boolean {
  const waiting: unknown[] = Object.values(parts)
  for (let next = waiting.pop(); waiting.length > 0 || next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null || isAdopted(next)) continue
    if (!Object.isFrozen(next)) return false
    waiting.push(...Object.values(next))
  }
  return true
}
