import { isIP } from 'node:net'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { RequestOptions } from 'node:https'
import { connect as connectTls, getCACertificates } from 'node:tls'
import { http, https } from './builtin.ts'
import { WebError } from './errors.ts'
import { openTunnel } from './tunnel.ts'
import { networkError, NotConnected } from './wire-error.ts'

/** An address that a name stands for. */
export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

/** How a host is reached. */
export type Route =
  /** At one of these and no other, whatever the name resolves to by then; without them wherever it resolves to. */
  | { readonly kind: 'direct'; readonly addresses?: readonly Address[] }
  /** `host` is what the proxy is told to connect to. */
  | { readonly kind: 'proxy'; readonly proxy: URL; readonly host: string }

export interface WireRequest {
  readonly url: URL
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly route: Route
  /** Certificates of authorities, in PEM, besides those that Node knows. */
  readonly ca?: string | undefined
  readonly maxHeaderBytes: number
  /** For reaching the host, its proxy and TLS included. */
  readonly connectTimeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Sends one request on a connection of its own and gives the head of the answer; whoever gets it reads or destroys it.
 *
 * Nothing is followed, decoded or tried again. Rejects with the signal's reason, with NotConnected where nothing had
 * been sent yet, and with WEB_PROVIDER_ERROR.
 */
export async function send(request: WireRequest): Promise<IncomingMessage> {
  const { url, connectTimeoutMs, signal } = request
  signal.throwIfAborted()
  const patience = new AbortController()
  const timer = setTimeout(() => patience.abort(), connectTimeoutMs)
  try {
    const reaching = AbortSignal.any([signal, patience.signal])
    const options = await connectionOf(request, reaching)
    return await headOf(open(request, options), request, { reaching, onConnect: () => clearTimeout(timer) })
  } catch (error) {
    signal.throwIfAborted()
    if (!patience.signal.aborted) throw error
    const problem = `${url.host} cannot be reached within ${connectTimeoutMs} ms`
    throw new NotConnected(new WebError('WEB_PROVIDER_ERROR', problem))
  } finally {
    clearTimeout(timer)
  }
}

function open(
  { url, method, headers, body, maxHeaderBytes }: WireRequest,
  options: RequestOptions,
): ClientRequest {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const request = (url.protocol === 'https:' ? https() : http()).request
  return request(url, {
    method,
    headers: { host: url.host, ...headers, ...length },
    maxHeaderSize: maxHeaderBytes,
    ...options,
  })
}

async function connectionOf({ url, route, ca }: WireRequest, signal: AbortSignal): Promise<RequestOptions> {
  const secure = url.protocol === 'https:'
  const trust = secure && ca !== undefined ? { ca: [...getCACertificates('default'), ca] } : {}
  if (route.kind === 'direct') {
    const { addresses } = route
    return { ...trust, agent: false, ...(addresses !== undefined && { lookup: pinned(addresses) }) }
  }
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  const socket = await openTunnel(route.proxy, { host: route.host, port, signal })
  // Without an agent, which would make a connection of its own.
  if (!secure) return { createConnection: () => socket }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const servername = isIP(host) === 0 ? host : ''
  return { createConnection: () => connectTls({ ...trust, socket, host, servername }) }
}

/** Answers a look-up with what was judged before. */
function pinned(addresses: readonly Address[]): NonNullable<RequestOptions['lookup']> {
  return (_host, { all }, callback) => {
    const [first] = addresses
    if (all === true) callback(null, [...addresses])
    else if (first === undefined) callback(new Error('no address'), '')
    else callback(null, first.address, first.family)
  }
}

interface Reaching {
  readonly reaching: AbortSignal
  onConnect(): void
}

function headOf(
  sent: ClientRequest,
  { url, body, route }: WireRequest,
  { reaching, onConnect }: Reaching,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let isConnected = false
    const connected = (): void => {
      isConnected = true
      onConnect()
    }
    const abort = (): void => void sent.destroy()
    const settle = (): void => reaching.removeEventListener('abort', abort)
    reaching.addEventListener('abort', abort, { once: true })
    sent.on('socket', socket => {
      const secure = url.protocol === 'https:'
      if (!secure && !socket.connecting) connected()
      else socket.once(secure ? 'secureConnect' : 'connect', connected)
    })
    sent.on('response', response => {
      settle()
      // Whoever destroys it early wants no word of that; a reader hears of it through its iterator.
      response.on('error', () => {})
      resolve(response)
    })
    sent.on('error', error => {
      settle()
      const failure = networkError(error, url, route.kind === 'proxy' ? route.proxy : undefined)
      reject(isConnected ? failure : new NotConnected(failure))
    })
    sent.end(body)
  })
}
