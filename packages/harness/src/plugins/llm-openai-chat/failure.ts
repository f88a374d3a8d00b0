import type { LlmFailure } from '@dsh/protocol'
import { classifyFailure, LlmError } from '../../core/llm/index.ts'
import type { LlmFailureCode } from '../../core/llm/index.ts'
import { isFields, messageOf, parseJson } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import type { ReportedError } from './chunk-decoder.ts'
import { TransportError } from './transport.ts'
import { clipped } from './wire-text.ts'

/** What an error message may name of the host it is about. */
export interface FailureSubject {
  /** The id of the route. */
  readonly provider: string
  readonly host: string
  /** Where the key came from, in words: `DEEPSEEK_API_KEY`. */
  readonly keySource: string
  readonly keysURL?: string | undefined
  readonly topUpURL?: string | undefined
  /** Texts that no message may hold. */
  readonly secrets: readonly string[]
}

export interface ErrorResponse {
  readonly status: number
  readonly body: string
  readonly requestId: string | undefined
  readonly retryAfterMs: number | undefined
}

/** Characters of a body that a message shows. */
const shownLength = 500

/** The failure of a response whose status says so. */
export function responseError(response: ErrorResponse, subject: FailureSubject): LlmError {
  const { status, body, requestId, retryAfterMs } = response
  const given = parseJson(body)
  const facts = isFields(given) ? errorFacts(given) : {}
  const text = shown(given === undefined ? body : failureText(given), subject)
  const code = classifyFailure({ status, code: facts.code, message: text })
  return new LlmError({
    code,
    message: sentence(`${subject.provider} answered ${status}: ${text}`, adviceFor(code, status, subject)),
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfterMs === undefined ? {} : { providerRetryAfterMs: retryAfterMs }),
  })
}

/** The failure of an answer that began well: the host reported an error in it. */
export function reportedFailure(error: ReportedError, subject: FailureSubject, requestId?: string): LlmError {
  const text = shown(error.message, subject)
  const { status } = error
  const classified = classifyFailure({ status, code: error.code, message: text })
  const unknown = /invalid|unsupported|malformed|param/i.test(error.code ?? '') ? 'INVALID_REQUEST' : 'SERVER'
  const code = classified === 'UNKNOWN' ? unknown : classified
  return new LlmError({
    code,
    message: sentence(`${subject.provider} reported an error: ${text}`, adviceFor(code, status, subject)),
    ...(status === undefined ? {} : { status }),
    ...(requestId === undefined ? {} : { requestId }),
  })
}

/** A failure of our own finding, such as a stream that broke off. */
export function wireFailure(
  code: LlmFailureCode,
  message: string,
  facts: Partial<LlmFailure> & { readonly cause?: unknown } = {},
): LlmError {
  const { cause, ...rest } = facts
  return new LlmError({ ...rest, code, message }, cause === undefined ? {} : { cause })
}

/** The failure of a network that did not carry the request or the answer. */
export function networkFailure(error: unknown, subject: FailureSubject): LlmError {
  const code = error instanceof TransportError ? error.code : 'UNKNOWN'
  const text = redacted(messageOf(error), subject.secrets)
  const { host, provider } = subject
  if (certificateCodes.has(code)) {
    const advice = 'if a certificate of your own is in use, set NODE_EXTRA_CA_CERTS to its file'
    return wireFailure('INVALID_RESPONSE', `the certificate of ${host} is not trusted (${code}); ${advice}`, {
      cause: error,
    })
  }
  if (code === 'PROXY_LOGIN') {
    const advice = 'set HTTPS_PROXY to http://user:password@host:port'
    return wireFailure('AUTH', `${provider} cannot be reached: ${text}; ${advice}`, {
      status: 407,
      cause: error,
    })
  }
  if (code === 'BAD_PROXY') {
    return wireFailure('INVALID_REQUEST', `${provider} cannot be reached: ${text}`, { cause: error })
  }
  if (code.startsWith('PROXY_')) {
    const advice = 'check HTTPS_PROXY, or list the host in NO_PROXY'
    return wireFailure('TRANSPORT', `${provider} cannot be reached: ${text}; ${advice}`, { cause: error })
  }
  const reason = networkReasons[code] ?? text
  return wireFailure('TRANSPORT', `${host} cannot be reached: ${reason} (${code})`, { cause: error })
}

const networkReasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'its name is not known; is this machine online',
  EAI_AGAIN: 'its name could not be looked up; is this machine online',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ENETUNREACH: 'there is no network to it',
  EHOSTUNREACH: 'there is no route to it',
  ETIMEDOUT: 'the connection timed out',
}

const certificateCodes = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_UNTRUSTED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

function adviceFor(code: string, status: number | undefined, subject: FailureSubject): string {
  if (code === 'QUOTA') {
    return subject.topUpURL === undefined
      ? 'the account has no balance left'
      : `the balance is used up; top up at ${subject.topUpURL}`
  }
  if (code === 'AUTH') {
    const where = subject.keysURL === undefined ? '' : ` at ${subject.keysURL}`
    return `check the key from ${subject.keySource}${where}`
  }
  if (status === 404 && code === 'INVALID_REQUEST')
    return `check the base URL, ${subject.host} knows no such path`
  if (status !== undefined && status >= 300 && status < 400)
    return 'redirects are not followed; correct the base URL'
  return ''
}

function sentence(text: string, advice: string): string {
  return advice === '' ? text : `${text} — ${advice}`
}

/** What a body says of its error, in its own words; the whole body where it has no place for a message. */
export function failureText(given: unknown): string {
  const first: unknown = Array.isArray(given) ? given[0] : given
  if (!isFields(first)) return typeof first === 'string' ? first : JSON.stringify(given)
  const { message, code } = errorFacts(first)
  if (message === undefined) return JSON.stringify(given)
  return code === undefined || message.includes(code) ? message : `${message} (${code})`
}

interface ErrorFacts {
  readonly message?: string | undefined
  readonly code?: string | undefined
}

function errorFacts(given: Fields): ErrorFacts {
  const { error } = given
  if (typeof error === 'string') return { message: error, code: word(given['code']) }
  const facts = isFields(error) ? error : isFields(given['base_resp']) ? given['base_resp'] : given
  const { metadata, detail } = facts
  const raw = isFields(metadata) && typeof metadata['raw'] === 'string' ? metadata['raw'] : undefined
  const texts = [facts['message'], facts['msg'], facts['status_msg'], detail, facts['error_description']]
  const said = texts.find((text): text is string => typeof text === 'string' && text !== '')
  const message = said === undefined || raw === undefined ? said : `${said}: ${raw}`
  return { message, code: word(facts['code']) ?? word(facts['type']) }
}

function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function shown(text: string, subject: FailureSubject): string {
  const clean = redacted(text, subject.secrets).trim()
  return clean === '' ? '(empty body)' : clipped(clean, shownLength)
}

/** Hosts echo keys, whole or in part; what looks like one goes too. */
function redacted(text: string, secrets: readonly string[]): string {
  let clean = text.toWellFormed()
  for (const secret of secrets) {
    if (secret.length >= 4) clean = clean.replaceAll(secret, '[redacted]')
  }
  return clean
    .replaceAll(/\b(?:sk|pk|rk|gsk|xai|key|nvapi|hf)[-_][A-Za-z0-9_*.-]{6,}/g, '[redacted]')
    .replaceAll(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}/gi, '$1 [redacted]')
    .replaceAll(/(:\/\/)[^\s/@:]+:[^\s/@]+@/g, '$1[redacted]@')
}

/** Milliseconds from a Retry-After header: seconds, also with a fraction, or an HTTP date. Undefined for anything else. */
export function retryAfterMs(header: (name: string) => string | undefined, now: number): number | undefined {
  const exact = Number(header('retry-after-ms') ?? Number.NaN)
  if (exact > 0 && Number.isFinite(exact)) return exact
  const value = header('retry-after')?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(value)) {
    const wait = Number(value) * 1000
    return wait > 0 && Number.isFinite(wait) ? wait : undefined
  }
  if (!/^[A-Za-z]{3,9},/.test(value)) return undefined
  const wait = Date.parse(value) - now
  return wait > 0 ? wait : undefined
}

const requestIdHeaders = ['x-request-id', 'request-id', 'x-ds-trace-id', 'x-trace-id', 'cf-ray']

export function requestIdOf(header: (name: string) => string | undefined): string | undefined {
  return requestIdHeaders.map(header).find(id => id !== undefined && id !== '')
}
