import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import type { CollectedAnswer } from '../../testing/index.ts'
import { OpenAIChatAdapter } from './index.ts'

/** For mock.test, signed by nobody but itself; it guards nothing. */
const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjc8cfeycy16mOQHc
UHOJC8y83qUszTQB4LelzhUWgX2hRANCAATmZ6ShYS4e60pYkFCOyuGrwo+ItDwv
c+XelRXhSFkfN0BCaFKccbbxXsuTzC+XLi4wLVYsJbNyNV0iWGPI/HfS
-----END PRIVATE KEY-----`
const certificate = `-----BEGIN CERTIFICATE-----
MIIBczCCARigAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAltb2NrLnRl
c3QwIBcNMjQwMTAxMDAwMDAwWhgPMjEyNDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CW1vY2sudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOZnpKFhLh7rSliQ
UI7K4avCj4i0PC9z5d6VFeFIWR83QEJoUpxxtvFey5PML5cuLjAtViwls3I1XSJY
Y8j8d9KjWTBXMA8GA1UdEwEB/wQFMAMBAf8wJQYDVR0RBB4wHIIJbW9jay50ZXN0
gglsb2NhbGhvc3SHBH8AAAEwHQYDVR0OBBYEFNOOUX3hEqFYZs6a2DOm1fGUzcY2
MAoGCCqGSM49BAMCA0kAMEYCIQCNHZ6YMkAkAzGSSBEUkcWda0CMyexquCkX/Gag
BWPKZwIhAPwZN+kzfu4/I5GTBgdYEZRV93j9eJGPH8CBQfHtYYxw
-----END CERTIFICATE-----`

interface Proxy {
  readonly url: string
  /** What was asked of it: `CONNECT host:port`, or the whole URL. */
  readonly asked: string[]
  readonly logins: (string | undefined)[]
}

/** A proxy that leads every target to `port`. */
async function startProxy(t: TestContext, port: number, { login }: { login?: string } = {}): Promise<Proxy> {
  const asked: string[] = []
  const logins: (string | undefined)[] = []
  const admit = (request: IncomingMessage): boolean => {
    asked.push(`${request.method} ${request.url}`)
    logins.push(request.headers['proxy-authorization'])
    return login === undefined || request.headers['proxy-authorization'] === login
  }
  const server = createServer((request, response) => {
    if (!admit(request)) return void response.writeHead(407).end()
    const onward = connect(port, '127.0.0.1', () => {
      const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
      onward.write(
        `${request.method} ${new URL(request.url ?? '').pathname} HTTP/1.1\r\n${headers.join('')}\r\n`,
      )
      request.pipe(onward, { end: false })
    })
    onward.pipe(response.socket ?? onward)
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    if (!admit(request)) return void socket.end('HTTP/1.1 407 Login\r\n\r\n')
    const onward = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
    socket.pipe(onward).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, logins }
}

/** TLS in front of the mock provider; gives its port. */
async function startTls(t: TestContext, port: number): Promise<number> {
  const server = createTlsServer({ key, cert: certificate }, socket => {
    const onward = connect(port, '127.0.0.1')
    socket.on('error', () => onward.destroy())
    onward.on('error', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

async function mockPort(t: TestContext): Promise<number> {
  const mock = await startMockProvider({ fallback: reply.text('fine'), key: null })
  t.after(() => mock.close())
  return Number(new URL(mock.url).port)
}

async function askThrough(
  t: TestContext,
  env: Record<string, string>,
  baseURL: string,
): Promise<CollectedAnswer> {
  const adapter = new OpenAIChatAdapter({ env, providers: { host: { baseURL, keyOptional: true } } })
  t.after(() => adapter.close())
  return await collectAnswer(adapter.stream({ provider: 'host', model: 'm', messages: [], system: 's' }))
}

const failureOf = ({ finish }: CollectedAnswer): unknown => finish.kind === 'error' && finish.failure

test('a plain target is asked through the proxy', async t => {
  const proxy = await startProxy(t, await mockPort(t))
  const answer = await askThrough(t, { HTTP_PROXY: proxy.url }, 'http://mock.test/v1')
  assert.equal(answer.text, 'fine')
  assert.deepEqual(proxy.asked, ['POST http://mock.test/v1/chat/completions'])
})

test('a secure target is asked through a tunnel, which serves the next request too', async t => {
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, certificate])
  t.after(() => setDefaultCACertificates(before))
  const proxy = await startProxy(t, await startTls(t, await mockPort(t)))
  const adapter = new OpenAIChatAdapter({
    env: { HTTPS_PROXY: proxy.url.replace('://', '://user:p%40ss@') },
    providers: { host: { baseURL: 'https://mock.test', keyOptional: true } },
  })
  t.after(() => adapter.close())
  const ask = () => collectAnswer(adapter.stream({ provider: 'host', model: 'm', messages: [], system: 's' }))
  assert.equal((await ask()).text, 'fine')
  await new Promise(resolve => setTimeout(resolve, 5))
  assert.equal((await ask()).text, 'fine')
  assert.deepEqual(proxy.asked, ['CONNECT mock.test:443'])
  assert.deepEqual(proxy.logins, [`Basic ${Buffer.from('user:p@ss').toString('base64')}`])
})

test('a host of this machine is asked directly', async t => {
  const port = await mockPort(t)
  const answer = await askThrough(t, { HTTP_PROXY: 'http://127.0.0.1:9' }, `http://localhost:${port}`)
  assert.equal(answer.text, 'fine')
})

test('a certificate that nobody vouches for is named with the variable to set', async t => {
  const port = await startTls(t, await mockPort(t))
  assert.deepEqual(failureOf(await askThrough(t, {}, `https://localhost:${port}`)), {
    code: 'INVALID_RESPONSE',
    message: `the certificate of localhost:${port} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); if a certificate of your own is in use, set NODE_EXTRA_CA_CERTS to its file`,
  })
})

test('a proxy that is down is named, without its login', async t => {
  const env = { HTTPS_PROXY: 'http://user:secretword@127.0.0.1:9' }
  assert.deepEqual(failureOf(await askThrough(t, env, 'https://mock.test')), {
    code: 'TRANSPORT',
    message:
      'host cannot be reached: proxy 127.0.0.1:9 cannot be reached: ECONNREFUSED; check HTTPS_PROXY, or list the host in NO_PROXY',
  })
})

for (const scheme of ['http', 'https']) {
  test(`a proxy that wants a login for ${scheme} says which variable takes it`, async t => {
    const proxy = await startProxy(t, 9, { login: 'Basic nobody' })
    const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url }
    assert.deepEqual(failureOf(await askThrough(t, env, `${scheme}://mock.test`)), {
      code: 'AUTH',
      status: 407,
      message: `host cannot be reached: proxy ${new URL(proxy.url).host} wants a login (407); set HTTPS_PROXY to http://user:password@host:port`,
    })
  })
}

test('a proxy that cannot be used is named', async t => {
  assert.deepEqual(failureOf(await askThrough(t, { HTTPS_PROXY: 'socks5://h:1' }, 'https://mock.test')), {
    code: 'INVALID_REQUEST',
    message:
      'host cannot be reached: HTTPS_PROXY is no http or https URL; a proxy of another kind cannot be used',
  })
})
