import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { http, https } from './builtin.ts'
import { errorCode } from '../http/index.ts'
import { NotConnected, proxyError } from './wire-error.ts'

export interface TunnelTarget {
  readonly host: string
  readonly port: number
  readonly signal: AbortSignal
}

/** A connection through `proxy` to exactly this host and port. Rejects with NotConnected, also on abort. */
export function openTunnel(proxy: URL, { host, port, signal }: TunnelTarget): Promise<Socket> {
  const secure = proxy.protocol === 'https:'
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const variable = port === 80 ? 'HTTP_PROXY' : 'HTTPS_PROXY'
  return new Promise((resolve, reject) => {
    const connect = (secure ? https() : http()).request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port === '' ? (secure ? 443 : 80) : Number(proxy.port),
      method: 'CONNECT',
      path: target,
      agent: false,
      headers: { host: target, ...loginOf(proxy) },
    })
    const abort = (): void => void connect.destroy()
    const fail = (problem: string, options?: ErrorOptions): void => {
      signal.removeEventListener('abort', abort)
      reject(new NotConnected(proxyError(proxy, problem, options)))
    }
    signal.addEventListener('abort', abort, { once: true })
    connect.once('connect', ({ statusCode }, socket: Socket) => {
      signal.removeEventListener('abort', abort)
      if (statusCode === 200) return resolve(socket)
      socket.destroy()
      if (statusCode === 407)
        return fail(`wants a login (407); set ${variable} to http://user:password@${proxy.host}`)
      fail(`refuses to connect to ${target} (${statusCode})${whereNames}`)
    })
    connect.once('error', error =>
      fail(`cannot be reached (${errorCode(error)}); check ${variable}, or list the host in NO_PROXY`, {
        cause: error,
      }),
    )
    connect.end()
  })
}

const whereNames = '; where it takes names only, set proxyResolves in the config of web'

function loginOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }
}
