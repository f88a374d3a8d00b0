import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { proxyFor } from '../http/index.ts'
import type { ReadEnv } from '../http/index.ts'
import { messageOf, unlessAborted } from '../../kernel/index.ts'
import { refuseLocal } from './address.ts'
import type { JudgeAddress } from './address.ts'
import { acceptedEncodings, readBody } from './body.ts'
import { decodeText } from './charset.ts'
import { startDeadline } from './deadline.ts'
import type { Deadline } from './deadline.ts'
import { WebError } from './errors.ts'
import { kindOf, parseMediaType, sniff } from './media-type.ts'
import { nextHop } from './redirect.ts'
import { addressesOf, systemResolve } from './resolve.ts'
import type { Resolve } from './resolve.ts'
import type { WebFetchProvider, WebFetchRequest, WebFetchResult } from './service.ts'
import { assertAddresses, toTarget } from './target.ts'
import type { Target, TargetRules } from './target.ts'
import { send } from './wire.ts'
import type { Address, Route } from './wire.ts'
import { networkError, NotConnected } from './wire-error.ts'

export interface HttpFetchConfig {
  readonly maxUrlLength: number
  readonly maxResponseBytes: number
  readonly maxHeaderBytes: number
  readonly timeoutMs: number
  readonly idleTimeoutMs: number
  readonly maxRedirects: number
  readonly userAgent: string
  readonly allowHosts: readonly string[]
  readonly allowPorts: readonly number[]
  /** The proxy is told names, and what they resolve to is its own concern. */
  readonly proxyResolves: boolean
}

/** What the provider stands on; the defaults are those of this machine. */
export interface HttpFetchGround {
  readonly env?: ReadEnv
  readonly resolve?: Resolve
  readonly judgeAddress?: JudgeAddress
  /** Certificates of authorities besides those that Node knows, in PEM. */
  readonly readCa?: () => Promise<string | undefined>
}

/** How long the way over https is tried for an http URL, and how long a name may take where a proxy could know it. */
const upgradeMs = 5000
const connectMs = 15_000
const proxiedLookupMs = 3000

/** Ports of the web, and those that stand in for them. */
const webPorts = [80, 443, 8080, 8443]

const accepted = 'text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5'

/**
 * Pages over HTTP, from public addresses only.
 *
 * Each hop is judged by its URL and by every address its name stands for, and the connection goes to the judged
 * addresses whatever the name resolves to by then, through a proxy too. An http URL is tried over https first.
 */
export class HttpFetch implements WebFetchProvider {
  readonly id = 'http'
  readonly #config: HttpFetchConfig
  readonly #rules: TargetRules
  readonly #env: ReadEnv
  readonly #resolve: Resolve
  readonly #readCa: NonNullable<HttpFetchGround['readCa']>

  constructor(config: HttpFetchConfig, ground: HttpFetchGround = {}) {
    const { env = () => undefined, resolve = systemResolve, judgeAddress = refuseLocal, readCa } = ground
    this.#config = config
    this.#rules = {
      maxUrlLength: config.maxUrlLength,
      ports: [...new Set([...webPorts, ...config.allowPorts])].sort((a, b) => a - b),
      allowHosts: config.allowHosts,
      judgeAddress,
    }
    this.#env = env
    this.#resolve = resolve
    this.#readCa = readCa ?? (async () => undefined)
  }

  available(): boolean {
    return true
  }

  async fetch({ url }: WebFetchRequest, signal: AbortSignal): Promise<WebFetchResult> {
    const target = toTarget(url, this.#rules)
    const deadline = startDeadline(signal, this.#config, target.host)
    try {
      return await this.#follow(target, deadline)
    } catch (error) {
      deadline.signal.throwIfAborted()
      throw error instanceof NotConnected ? error.failure : error
    } finally {
      deadline.end()
    }
  }

  async #follow(first: Target, deadline: Deadline): Promise<WebFetchResult> {
    const { maxRedirects } = this.#config
    let target = first
    for (let hops = 0; ; hops++) {
      const { message, url } = await this.#visit(target, first, deadline.signal)
      const next = nextHop(url, message, { allowsDowngrade: first.url.protocol === 'http:' })
      if (next === undefined) return await this.#read(message, url, deadline)
      message.destroy()
      if (hops >= maxRedirects) {
        const problem = `more than ${maxRedirects} redirects; the last one leads to ${next.url.href}`
        throw new WebError('WEB_REDIRECT_BLOCKED', problem)
      }
      target = this.#judgeHop(next.url)
      if (!next.isSameSite) return redirected(url, message, target.url)
    }
  }

  /** What a page points at is held to the same rules as what is asked for. */
  #judgeHop(url: URL): Target {
    try {
      return toTarget(url.href, this.#rules)
    } catch (cause) {
      if (!(cause instanceof WebError)) throw cause
      throw new WebError(cause.code, `the answer is a redirect: ${cause.message}`, { cause })
    }
  }

  /** Asks over https where the URL names http and no port of its own, and as it says where nobody answers there. */
  async #visit(target: Target, first: Target, signal: AbortSignal): Promise<Visit> {
    const { url, host, isAllowed } = target
    const isFirst = target === first
    if (!isFirst || url.protocol === 'https:' || url.port !== '' || isAllowed || isIP(host) !== 0)
      return await this.#ask(target, signal)
    const secure = new URL(url)
    secure.protocol = 'https:'
    try {
      return await this.#ask({ ...target, url: secure, port: 443 }, signal, upgradeMs)
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof NotConnected)) throw error
      return await this.#ask(target, signal)
    }
  }

  async #ask(target: Target, signal: AbortSignal, connectTimeoutMs = connectMs): Promise<Visit> {
    const { url } = target
    const { userAgent, maxHeaderBytes } = this.#config
    const message = await send({
      url,
      method: 'GET',
      headers: { accept: accepted, 'accept-encoding': acceptedEncodings, 'user-agent': userAgent },
      route: await this.#routeTo(target, signal),
      ca: await this.#readCa(),
      maxHeaderBytes,
      connectTimeoutMs,
      signal,
    })
    return { message, url }
  }

  async #routeTo(target: Target, signal: AbortSignal): Promise<Route> {
    const { host, url } = target
    const proxy = this.#proxyFor(url)
    if (proxy === undefined) return { kind: 'direct', addresses: await this.#addresses(target, signal) }
    if (this.#config.proxyResolves && isIP(host) === 0) return { kind: 'proxy', proxy, host }
    const addresses = await this.#addressesBehind(target, signal)
    // A proxy is more likely to reach an address of IPv4.
    const pinned = addresses?.find(({ family }) => family === 4) ?? addresses?.[0]
    return { kind: 'proxy', proxy, host: pinned?.address ?? host }
  }

  async #addresses(target: Target, signal: AbortSignal): Promise<readonly Address[]> {
    let addresses: readonly Address[]
    try {
      addresses = await addressesOf(target.host, this.#resolve, signal)
    } catch (error) {
      signal.throwIfAborted()
      throw networkError(error, target.url, undefined)
    }
    assertAddresses(target, addresses, this.#rules.judgeAddress)
    return addresses
  }

  /** Undefined where the name is known to nobody here, as behind a proxy that is the only way out. */
  async #addressesBehind(target: Target, signal: AbortSignal): Promise<readonly Address[] | undefined> {
    const patience = new AbortController()
    const timer = setTimeout(() => patience.abort(), proxiedLookupMs)
    try {
      return await this.#addresses(target, AbortSignal.any([signal, patience.signal]))
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof WebError && error.code === 'WEB_BLOCKED_URL') throw error
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  #proxyFor(url: URL): URL | undefined {
    try {
      return proxyFor(url, this.#env)
    } catch (cause) {
      throw new WebError('WEB_PROVIDER_ERROR', messageOf(cause), { cause })
    }
  }

  async #read(message: IncomingMessage, url: URL, deadline: Deadline): Promise<WebFetchResult> {
    const { maxResponseBytes } = this.#config
    const { signal } = deadline
    try {
      const { essence, charset } = parseMediaType(message.headers['content-type'])
      if (kindOf(essence) === undefined) throw unreadable(essence)
      const declared = Number(message.headers['content-length'] ?? 0)
      if (declared > maxResponseBytes)
        throw new WebError(
          'WEB_FETCH_TOO_LARGE',
          `the body has ${declared} bytes, more than ${maxResponseBytes}`,
        )
      deadline.alive()
      const limits = { maxBytes: maxResponseBytes, onData: deadline.alive }
      const { bytes, isCut } = await unlessAborted(readBody(message, limits), signal)
      const kind = essence === '' ? sniff(bytes) : kindOf(essence)
      if (kind === undefined || kind === 'unsaid') throw unreadable('a body without a type')
      return {
        url: url.href,
        statusCode: message.statusCode ?? 0,
        body: { kind, content: decodeText(bytes, charset, { isHtml: kind === 'html', isCut }) },
        truncated: isCut,
      }
    } catch (error) {
      throw error instanceof WebError ? error : networkError(error, url, undefined)
    } finally {
      message.destroy()
    }
  }
}

interface Visit {
  readonly message: IncomingMessage
  readonly url: URL
}

function redirected(url: URL, { statusCode = 0 }: IncomingMessage, next: URL): WebFetchResult {
  return {
    url: url.href,
    statusCode,
    body: { kind: 'text', content: '' },
    truncated: false,
    redirect: next.href,
  }
}

function unreadable(type: string): WebError {
  const problem = `${type} cannot be read; html, text, json and xml can`
  return new WebError('WEB_UNSUPPORTED_CONTENT_TYPE', problem)
}
