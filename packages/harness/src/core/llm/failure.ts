import type { LlmFailure } from '@dsh/protocol'
import { HarnessError, isHarnessError } from '../../kernel/index.ts'

/** Codes of the core and its adapters. The set is open: an adapter may name a failure of its own. */
export type LlmFailureCode =
  /** Worth another try. */
  | 'RATE_LIMIT'
  | 'SERVER'
  | 'TIMEOUT'
  | 'TRANSPORT'
  | 'STREAM_CLOSED'
  | 'EMPTY_RESPONSE'
  /** Another try gives the same. */
  | 'AUTH'
  | 'QUOTA'
  | 'MISSING_CREDENTIAL'
  | 'INVALID_CREDENTIAL'
  | 'INVALID_REQUEST'
  | 'INVALID_RESPONSE'
  | 'MALFORMED_RESPONSE'
  | 'UNSUPPORTED_CONTENT'
  | 'UNSUPPORTED_OPTION'
  | 'UNKNOWN_MODEL'
  | 'INVALID_REPLAY_STATE'
  /** Cured by a shorter history alone. */
  | 'CONTEXT_WINDOW_EXCEEDED'
  /** The caller's own abort. */
  | 'ABORTED'
  /** Contracts of the registry. */
  | 'NO_ADAPTER'
  | 'DUPLICATE_ADAPTER'
  | 'INVALID_ADAPTER'
  | 'REGISTRATION_DISPOSED'
  | 'INVALID_PREPARED_CALL'
  | 'UNSUPPORTED_REASONING_EFFORT'
  | 'INVALID_MODEL_INFO'
  | 'INVALID_MODEL_CONTEXT'
  | 'INVALID_MODEL_MAX_TOKENS'
  | 'INVALID_MODEL_REASONING'
  | 'INVALID_CATALOG'
  | 'INVALID_DIRECTORY'
  | 'DUPLICATE_DIRECTORY'
  | 'INVALID_DISCOVERY'
  | 'DUPLICATE_DISCOVERY'
  | 'NO_DISCOVERY'
  | 'UNKNOWN'

/** A failed model request, or a broken contract around one. `failure` is frozen and is what a log keeps. */
export class LlmError extends HarnessError {
  static {
    this.prototype.name = 'LlmError'
  }

  readonly failure: LlmFailure

  /** Throws a TypeError or RangeError for facts that no log could hold. */
  constructor(failure: LlmFailure, options?: ErrorOptions) {
    const facts = checkedFailure(failure)
    super(facts.code, facts.message, options)
    this.failure = facts
  }
}

/** Shorthand for an `LlmError` without further facts. */
export function llmError(code: LlmFailureCode, message: string, options?: ErrorOptions): LlmError {
  return new LlmError({ code, message }, options)
}

const noMessage = 'LLM adapter failed'

/**
 * The facts of anything that was thrown; never throws.
 *
 * An error's own `failure` counts only where it is whole and names the error's own `code`; a HarnessError gives its
 * code; all else is UNKNOWN.
 */
export function toLlmFailure(thrown: unknown): LlmFailure {
  try {
    return failureOf(thrown)
  } catch {
    return unknownFailure
  }
}

const unknownFailure: LlmFailure = Object.freeze({ message: noMessage, code: 'UNKNOWN' })

function failureOf(thrown: unknown): LlmFailure {
  if (typeof thrown === 'string' && thrown !== '') return Object.freeze({ message: thrown, code: 'UNKNOWN' })
  if (typeof thrown !== 'object' || thrown === null) return unknownFailure
  const code = ownData(thrown, 'code')
  const stated = statedFailure(ownData(thrown, 'failure'), code)
  if (stated !== undefined) return stated
  const { message } = thrown as { message?: unknown }
  const known = typeof code === 'string' && code !== '' && isHarnessError(thrown)
  return Object.freeze({
    message: typeof message === 'string' && message !== '' ? message : noMessage,
    code: known ? code : 'UNKNOWN',
  })
}

function statedFailure(candidate: unknown, code: unknown): LlmFailure | undefined {
  if (typeof candidate !== 'object' || candidate === null) return undefined
  try {
    const facts = checkedFailure(candidate)
    return facts.code === code ? facts : undefined
  } catch {
    return undefined
  }
}

/** A data property of the object itself; accessors and what is inherited do not count. */
function ownData(value: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(value, key)?.value
}

/** A frozen copy with the known fields alone, each read once. Throws for a field that is not as declared. */
function checkedFailure(candidate: object): LlmFailure {
  const { message, code, status, providerRetryAfterMs, requestId } = candidate as Record<string, unknown>
  if (typeof message !== 'string')
    throw new TypeError(`failure message must be a string, not ${typeof message}`)
  if (typeof code !== 'string' || code === '') throw new TypeError('failure code must be a non-empty string')
  const facts: { -readonly [Key in keyof LlmFailure]: LlmFailure[Key] } = { message, code }
  if (status !== undefined) {
    if (!isStatus(status)) throw new RangeError(`failure status ${JSON.stringify(status)} is not 100–599`)
    facts.status = status
  }
  if (providerRetryAfterMs !== undefined) {
    if (!isDelay(providerRetryAfterMs))
      throw new RangeError(
        `failure providerRetryAfterMs ${JSON.stringify(providerRetryAfterMs)} is not a positive number`,
      )
    facts.providerRetryAfterMs = providerRetryAfterMs
  }
  if (requestId !== undefined) {
    if (typeof requestId !== 'string') throw new TypeError('failure requestId must be a string')
    facts.requestId = requestId
  }
  return Object.freeze(facts)
}

/** The same of a failure told in a stream, where a wrong or missing field is left out instead. */
export function mendedFailure(candidate: unknown): LlmFailure {
  if (typeof candidate !== 'object' || candidate === null) return unknownFailure
  const { message, code, status, providerRetryAfterMs, requestId } = candidate as Record<string, unknown>
  return Object.freeze({
    message: typeof message === 'string' && message !== '' ? message : noMessage,
    code: typeof code === 'string' && code !== '' ? code : 'UNKNOWN',
    ...(isStatus(status) ? { status } : {}),
    ...(isDelay(providerRetryAfterMs) ? { providerRetryAfterMs } : {}),
    ...(typeof requestId === 'string' ? { requestId } : {}),
  })
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599
}

function isDelay(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) > 0
}
