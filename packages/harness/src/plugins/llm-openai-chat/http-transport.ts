import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { messageOf } from '../../kernel/index.ts'
import { http, https, zlib } from './builtin.ts'
import { errorCode, proxyFor } from '../http/index.ts'
import type { ReadEnv } from '../http/index.ts'
import { TransportError } from './transport.ts'
import type { WireRequest, WireResponse } from './transport.ts'
import { addressOf, loginOf, proxyLogin, tunnelAgent } from './tunnel.ts'

/** How long a body may take to end by itself after its last event. */
const releaseMs = 1000

/**
 * HTTP/1.1 on node:http, with connections kept for reuse.
 *
 * Not on fetch: its first call costs 50 ms and 16 MB, its body timer undercuts ours, and it takes proxies from the
 * process's environment alone.
 */
export class HttpTransport {
  readonly #env: ReadEnv
  readonly #agents = new Map<string, Agent>()

  constructor(env: ReadEnv) {
    this.#env = env
  }

  readonly send = async (request: WireRequest): Promise<WireResponse> => {
    request.signal.throwIfAborted()
    try {
      return await this.#attempt(request, { fresh: false })
    } catch (error) {
      request.signal.throwIfAborted()
      if (!(error instanceof StaleConnection)) throw error
      return await this.#attempt(request, { fresh: true })
    }
  }

  /** Ends kept connections; requests that run go on. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    this.#agents.clear()
  }

  async #attempt(request: WireRequest, { fresh }: { readonly fresh: boolean }): Promise<WireResponse> {
    const proxy = this.#proxy(request.url)
    const secure = request.url.protocol === 'https:'
    const { request: open } = secure ? https() : http()
    const options: RequestOptions = {
      method: request.method,
      agent: fresh ? false : this.#agent(secure, proxy),
      ...(proxy && !secure ? viaProxy(request, proxy) : { headers: headersOf(request) }),
    }
    if (fresh && secure && proxy) options.agent = tunnelAgent(proxy, { keepAlive: false })
    const sent = proxy && !secure ? open(options) : open(request.url, options)
    const response = await headOf(sent, request, proxy)
    if (response.statusCode === 407 && proxy) {
      response.destroy()
      throw proxyLogin(proxy)
    }
    return new HttpResponse(response)
  }

  #proxy(url: URL): URL | undefined {
    try {
      return proxyFor(url, this.#env)
    } catch (cause) {
      throw new TransportError('BAD_PROXY', messageOf(cause), { cause })
    }
  }

  #agent(secure: boolean, proxy: URL | undefined): Agent {
    const key = `${secure ? 's' : ''}${proxy?.href ?? ''}`
    const known = this.#agents.get(key)
    if (known) return known
    const settings = { keepAlive: true, scheduling: 'lifo' } as const
    const { Agent } = secure ? https() : http()
    const agent = secure && proxy ? tunnelAgent(proxy, settings) : new Agent(settings)
    this.#agents.set(key, agent)
    return agent
  }
}

/** A kept connection turned out to be closed before a byte came back; asking again does not ask twice. */
class StaleConnection extends Error {}

function headersOf({ headers, body }: WireRequest): Record<string, string | number> {
  if (body === undefined) return { ...headers }
  return { ...headers, 'content-length': body.reduce((total, part) => total + part.length, 0) }
}

function viaProxy(request: WireRequest, proxy: URL): RequestOptions {
  return {
    ...addressOf(proxy),
    path: request.url.href,
    headers: { ...headersOf(request), host: request.url.host, ...loginOf(proxy) },
  }
}

function headOf(sent: ClientRequest, request: WireRequest, proxy: URL | undefined): Promise<IncomingMessage> {
  const { signal, connectTimeoutMs, url } = request
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const message = `no connection to ${(proxy ?? url).host} within ${connectTimeoutMs} ms`
      sent.destroy(new TransportError('CONNECT_TIMEOUT', message))
    }, connectTimeoutMs)
    const connected = (): void => clearTimeout(timer)
    const abort = (): void => void sent.destroy(new TransportError('ABORTED', 'aborted'))
    const settle = (): void => {
      connected()
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort)
    sent.on('socket', socket => onReady(socket, connected))
    sent.on('response', response => {
      settle()
      resolve(response)
    })
    sent.on('error', error => {
      settle()
      if (signal.aborted) reject(signal.reason as Error)
      else reject(sent.reusedSocket && isReset(error) ? new StaleConnection() : asTransportError(error))
    })
    sent.cork()
    for (const part of request.body ?? []) sent.write(part)
    sent.end()
    sent.uncork()
  })
}

function onReady(socket: Socket, ready: () => void): void {
  if (!socket.connecting && !isHandshaking(socket)) ready()
  else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', ready)
}

function isHandshaking(socket: Socket): boolean {
  return 'encrypted' in socket && (socket as TLSSocket).getProtocol() === null
}

function isReset(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(errorCode(error))
}

function asTransportError(error: Error): TransportError {
  return error instanceof TransportError
    ? error
    : new TransportError(errorCode(error), error.message, { cause: error })
}

class HttpResponse implements WireResponse {
  readonly status: number
  readonly #message: IncomingMessage
  readonly #bytes: AsyncIterator<Uint8Array>

  constructor(message: IncomingMessage) {
    this.status = message.statusCode ?? 0
    this.#message = message
    this.#bytes = decoded(message).iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array>
  }

  header(name: string): string | undefined {
    const value = this.#message.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  async read(): Promise<Uint8Array | undefined> {
    try {
      const result = await this.#bytes.next()
      return result.done === true ? undefined : result.value
    } catch (error) {
      throw asTransportError(error as Error)
    }
  }

  discard(): void {
    this.#message.on('error', () => {})
    this.#message.destroy()
  }

  release(): void {
    const message = this.#message
    if (message.complete && message.readableEnded) return
    message.on('error', () => {})
    const timer = setTimeout(() => message.destroy(), releaseMs).unref()
    message.once('close', () => clearTimeout(timer))
    void this.#drain()
  }

  async #drain(): Promise<void> {
    try {
      while ((await this.#bytes.next()).done !== true);
    } catch {
      this.#message.destroy()
    }
  }
}

/** We ask for plain bytes; some gateways compress all the same. */
function decoded(message: IncomingMessage): Readable {
  const encoding = message.headers['content-encoding']
  if (encoding === undefined || encoding === 'identity') return message
  const decoder = encoding === 'br' ? zlib().createBrotliDecompress() : zlib().createUnzip()
  message.on('error', error => decoder.destroy(error))
  message.once('close', () => {
    if (!message.readableEnded) decoder.destroy(new TransportError('ECONNRESET', 'aborted'))
  })
  return message.pipe(decoder)
}
