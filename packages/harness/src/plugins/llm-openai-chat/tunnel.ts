import type { Agent } from 'node:http'
import type { AgentOptions } from 'node:https'
import type { Duplex } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { http, https, tls } from './builtin.ts'
import { errorCode } from '../http/index.ts'
import { TransportError } from './transport.ts'

/** An agent whose connections go through a CONNECT tunnel. */
export function tunnelAgent(proxy: URL, settings: AgentOptions): Agent {
  const { Agent } = https()
  const agent = new Agent(settings)
  agent.createConnection = (options, callback) => {
    const { host, port, servername } = options as ConnectionOptions
    openTunnel(proxy, `${host}:${port}`).then(
      socket => {
        callback?.(
          null,
          tls().connect({ ...(options as ConnectionOptions), socket, servername: servername ?? host }),
        )
      },
      (error: Error) => callback?.(error, undefined as never),
    )
    return undefined
  }
  return agent
}

function openTunnel(proxy: URL, target: string): Promise<Duplex> {
  const secure = proxy.protocol === 'https:'
  const { request } = secure ? https() : http()
  return new Promise((resolve, reject) => {
    const connect = request({
      ...addressOf(proxy),
      method: 'CONNECT',
      path: target,
      agent: false,
      headers: { host: target, ...loginOf(proxy) },
    })
    connect.once('connect', (response, socket) => {
      if (response.statusCode === 200) return resolve(socket)
      socket.destroy()
      if (response.statusCode === 407) return reject(proxyLogin(proxy))
      reject(
        new TransportError('PROXY_REFUSED', `proxy ${proxy.host} answered ${response.statusCode} to CONNECT`),
      )
    })
    connect.once('error', error => {
      const message = `proxy ${proxy.host} cannot be reached: ${errorCode(error)}`
      reject(new TransportError('PROXY_UNREACHABLE', message, { cause: error }))
    })
    // Whoever waits for the tunnel keeps the process alive; the tunnel alone does not.
    connect.once('socket', socket => socket.unref())
    connect.end()
  })
}

export function addressOf(proxy: URL): { host: string; port: number } {
  const port = proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port)
  return { host: proxy.hostname.replace(/^\[|\]$/g, ''), port }
}

export function loginOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }
}

export function proxyLogin(proxy: URL): TransportError {
  return new TransportError('PROXY_LOGIN', `proxy ${proxy.host} wants a login (407)`)
}
