import { cutText } from '../../core/tools/index.ts'
import { unlessAborted } from '../../kernel/index.ts'
import { acceptedEncodings, readBody } from './body.ts'
import { WebError } from './errors.ts'
import { send } from './wire.ts'
import type { Route } from './wire.ts'
import { networkError, NotConnected } from './wire-error.ts'

export interface JsonRequest {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal: AbortSignal
}

/** How services that a person configured are reached. */
export interface ServiceGround {
  routeTo(url: URL): Route
  readCa(): Promise<string | undefined>
}

const maxAnswerBytes = 4_000_000
const connectTimeoutMs = 15_000

/** Of what a service says of its own failure. */
const maxProblemBytes = 300

/**
 * Asks a service and gives what it answered. A redirect is refused before anybody is asked at its target, so that no
 * key goes there. Rejects with a WebError that never repeats a key in `secrets`, or with the signal's reason.
 */
export async function askJson(
  request: JsonRequest,
  ground: ServiceGround,
  secrets: readonly string[],
): Promise<unknown> {
  const { url, body, signal } = request
  try {
    const message = await send({
      url,
      method: request.method,
      headers: {
        accept: 'application/json',
        'accept-encoding': acceptedEncodings,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...request.headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      route: ground.routeTo(url),
      ca: await ground.readCa(),
      maxHeaderBytes: 65_536,
      connectTimeoutMs,
      signal,
    })
    const { statusCode = 0 } = message
    if (statusCode >= 300 && statusCode < 400) {
      message.destroy()
      throw new WebError(
        'WEB_REDIRECT_BLOCKED',
        `${url.host} answers with a redirect; give its own URL instead`,
      )
    }
    const { bytes, isCut } = await unlessAborted(readBody(message, { maxBytes: maxAnswerBytes }), signal)
    if (isCut)
      throw new WebError('WEB_FETCH_TOO_LARGE', `${url.host} answered more than ${maxAnswerBytes} bytes`)
    const text = Buffer.from(bytes).toString('utf8')
    if (statusCode !== 200 && statusCode !== 201)
      throw refused(url, statusCode, without(problemIn(text), secrets))
    return parsed(text, url)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof WebError) throw error
    throw error instanceof NotConnected ? error.failure : networkError(error, url, undefined)
  }
}

function refused({ host }: URL, status: number, problem: string): WebError {
  const said = problem === '' ? '' : `: ${problem}`
  if (status === 401 || status === 403)
    return new WebError('WEB_PROVIDER_ERROR', `${host} refuses the key (HTTP ${status})${said}`)
  return new WebError('WEB_PROVIDER_ERROR', `${host} answered HTTP ${status}${said}`)
}

function parsed(text: string, { host }: URL): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new WebError('WEB_PROVIDER_ERROR', `${host} did not answer in JSON`, { cause })
  }
}

/** What the many forms of an error body say, on one line. */
function problemIn(text: string): string {
  let value: unknown = text
  try {
    value = JSON.parse(text)
  } catch {
    if (text.trimStart().startsWith('<')) return ''
  }
  for (let depth = 0; depth < 4 && typeof value === 'object' && value !== null; depth++) {
    const { error, message, detail, errors } = value as Record<string, unknown>
    value = error ?? message ?? detail ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return typeof value === 'string' ? value.replace(/\s+/g, ' ').trim() : ''
}

function without(text: string, secrets: readonly string[]): string {
  const clean = secrets.reduce(
    (said, secret) => (secret === '' ? said : said.replaceAll(secret, '***')),
    text,
  )
  return cutText(clean, maxProblemBytes)
}
