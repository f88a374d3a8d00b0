import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { refuseLocal } from './address.ts'
import { webSchema } from './config.ts'
import { HttpFetch } from './fetch.ts'
import type { HttpFetchConfig, HttpFetchGround } from './fetch.ts'

/** For mock.test, localhost and 127.0.0.1, signed by nobody but itself; it guards nothing. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjc8cfeycy16mOQHc
UHOJC8y83qUszTQB4LelzhUWgX2hRANCAATmZ6ShYS4e60pYkFCOyuGrwo+ItDwv
c+XelRXhSFkfN0BCaFKccbbxXsuTzC+XLi4wLVYsJbNyNV0iWGPI/HfS
-----END PRIVATE KEY-----`
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBczCCARigAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAltb2NrLnRl
c3QwIBcNMjQwMTAxMDAwMDAwWhgPMjEyNDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CW1vY2sudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOZnpKFhLh7rSliQ
UI7K4avCj4i0PC9z5d6VFeFIWR83QEJoUpxxtvFey5PML5cuLjAtViwls3I1XSJY
Y8j8d9KjWTBXMA8GA1UdEwEB/wQFMAMBAf8wJQYDVR0RBB4wHIIJbW9jay50ZXN0
gglsb2NhbGhvc3SHBH8AAAEwHQYDVR0OBBYEFNOOUX3hEqFYZs6a2DOm1fGUzcY2
MAoGCCqGSM49BAMCA0kAMEYCIQCNHZ6YMkAkAzGSSBEUkcWda0CMyexquCkX/Gag
BWPKZwIhAPwZN+kzfu4/I5GTBgdYEZRV93j9eJGPH8CBQfHtYYxw
-----END CERTIFICATE-----`

/** What it gives is nobody's: the response alone counts. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

export interface Site {
  readonly port: number
  /** `METHOD url` of each request. */
  readonly asked: string[]
  readonly requests: IncomingMessage[]
}

/** A server on 127.0.0.1 until the test ends. */
export async function startSite(t: TestContext, answer: Answer, options: { tls?: true } = {}): Promise<Site> {
  const asked: string[] = []
  const requests: IncomingMessage[] = []
  const listen: RequestListener = (request, response) => {
    asked.push(`${request.method} ${request.url}`)
    requests.push(request)
    answer(request, response)
  }
  const server = options.tls ? createTlsServer({ key, cert: certificate }, listen) : createServer(listen)
  return { port: await start(t, server), asked, requests }
}

async function start(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  t.after(() => server.closeAllConnections())
  return (server.address() as AddressInfo).port
}

export interface ProxyRules {
  /** Where a CONNECT to such a target leads; undefined = it is refused. */
  readonly targets: Readonly<Record<string, number>>
  readonly login?: string
}

/** A proxy on 127.0.0.1 that connects to whatever the rules say a target is. */
export async function startProxy(
  t: TestContext,
  { targets, login }: ProxyRules,
): Promise<{ readonly host: string; readonly asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(400).end()
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    asked.push(`CONNECT ${request.url}`)
    if (login !== undefined && request.headers['proxy-authorization'] !== login)
      return void socket.end('HTTP/1.1 407 Login\r\n\r\n')
    const port = targets[request.url ?? '']
    if (port === undefined) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    const onward = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
    socket.pipe(onward).pipe(socket)
  })
  const port = await start(t, server)
  return { host: `127.0.0.1:${port}`, asked }
}

/** The guard as it is, but for 127.0.0.1, where the sites of tests are. */
export function refuseAllButSites(address: string): string | undefined {
  return address === '127.0.0.1' ? undefined : refuseLocal(address)
}

export interface TestGround extends HttpFetchGround {
  /** Answers to look-ups of a name, one after the other; the last one stays. Other names are not found. */
  readonly names?: Readonly<Record<string, readonly (readonly string[])[]>>
}

export interface TestFetch {
  readonly fetch: (url: string, signal?: AbortSignal) => ReturnType<HttpFetch['fetch']>
  /** Names that were looked up. */
  readonly lookups: string[]
}

/** The provider with its defaults; `site.test`, `www.site.test`, `other.test` and `mock.test` are 127.0.0.1. */
export function testFetch(
  config: Partial<HttpFetchConfig> = {},
  { names = {}, ...ground }: TestGround = {},
): TestFetch {
  const lookups: string[] = []
  const sites = Object.fromEntries(
    ['site.test', 'www.site.test', 'other.test', 'mock.test'].map(name => [name, [['127.0.0.1']]]),
  )
  const answers = new Map<string, readonly (readonly string[])[]>(Object.entries({ ...sites, ...names }))
  const provider = new HttpFetch(
    { ...defaults(), ...config },
    {
      judgeAddress: refuseAllButSites,
      async resolve(host) {
        lookups.push(host)
        const [first, ...rest] = answers.get(host) ?? []
        if (first === undefined) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
        if (rest.length > 0) answers.set(host, rest)
        return first.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
      },
      ...ground,
    },
  )
  const never = new AbortController().signal
  return { fetch: (url, signal = never) => provider.fetch({ url }, signal), lookups }
}

function defaults(): HttpFetchConfig {
  const result = webSchema()['~standard'].validate({})
  if (result instanceof Promise || result.issues !== undefined) throw new TypeError('no defaults')
  return { ...result.value, timeoutMs: result.value.fetchTimeoutMs }
}
