import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { refuseLocal } from './address.ts'
import type { HttpFetchConfig } from './fetch.ts'
import { certificate, startProxy, startSite, testFetch } from './test-site.ts'
import type { ProxyRules, TestGround } from './test-site.ts'

const naming: RequestListener = (request, response) =>
  void response.writeHead(200, { 'content-type': 'text/plain' }).end(`${request.headers.host}${request.url}`)

const readCa = async (): Promise<string> => certificate
const publicName = { 'mock.test': [['9.9.9.9']], 'site.test': [['9.9.9.9']] }

interface Around {
  readonly rules?: Partial<ProxyRules>
  readonly config?: Partial<HttpFetchConfig>
  readonly ground?: TestGround
  readonly env?: Record<string, string>
}

/** A proxy that takes 9.9.9.9, on both ports of the web, for sites of this test. */
async function setup(t: TestContext, { rules = {}, config, ground, env = {} }: Around = {}) {
  const secure = await startSite(t, naming, { tls: true })
  const open = await startSite(t, naming)
  const targets = { '9.9.9.9:443': secure.port, '9.9.9.9:80': open.port, 'mock.test:443': secure.port }
  const proxy = await startProxy(t, { targets, ...rules })
  const variables: Record<string, string> = {
    HTTPS_PROXY: `http://${proxy.host}`,
    http_proxy: `http://${proxy.host}`,
    ...env,
  }
  const { fetch, lookups } = testFetch(config, {
    judgeAddress: refuseLocal,
    names: publicName,
    readCa,
    env: name => variables[name],
    ...ground,
  })
  return { proxy, secure, open, fetch, lookups }
}

describe('through a proxy', () => {
  test('the judged address is asked for, and the host is who answers', async t => {
    const { proxy, secure, fetch } = await setup(t)
    assert.equal((await fetch('https://mock.test/page')).body.content, 'mock.test/page')
    assert.deepEqual(proxy.asked, ['CONNECT 9.9.9.9:443'])
    assert.deepEqual(secure.asked, ['GET /page'])
  })

  test('an http page goes through a tunnel too', async t => {
    const { proxy, fetch } = await setup(t, { config: { allowPorts: [81] }, rules: {} })
    await assert.rejects(fetch('http://site.test:81/'), { code: 'WEB_PROVIDER_ERROR' })
    assert.deepEqual(proxy.asked, ['CONNECT 9.9.9.9:81'])
  })

  for (const address of ['10.0.0.1', '127.0.0.1', '169.254.169.254']) {
    test(`a name that stands for ${address} is refused unasked`, async t => {
      const { proxy, fetch } = await setup(t, { ground: { names: { 'evil.test': [[address]] } } })
      await assert.rejects(fetch('https://evil.test/'), { code: 'WEB_BLOCKED_URL' })
      assert.deepEqual(proxy.asked, [])
    })
  }

  for (const url of [
    'http://127.0.0.1/',
    'http://0x7f.1/',
    'http://localhost/',
    'https://x.internal/',
    'http://intranet/',
  ]) {
    test(`${url} is refused unasked`, async t => {
      const { proxy, fetch } = await setup(t)
      await assert.rejects(fetch(url), { code: 'WEB_BLOCKED_URL' })
      assert.deepEqual(proxy.asked, [])
    })
  }

  test('a name that nobody here knows is handed over', async t => {
    const { proxy, fetch } = await setup(t, {
      ground: { resolve: () => Promise.reject(new Error('no DNS')) },
    })
    assert.equal((await fetch('https://mock.test/page')).body.content, 'mock.test/page')
    assert.deepEqual(proxy.asked, ['CONNECT mock.test:443'])
  })

  test('a name whose look-up hangs is handed over after a while', async t => {
    const { proxy, fetch } = await setup(t, { ground: { resolve: () => new Promise(() => {}) } })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const result = fetch('https://mock.test/page')
    await new Promise(resolve => setImmediate(resolve))
    t.mock.timers.tick(3000)
    assert.equal((await result).body.content, 'mock.test/page')
    assert.deepEqual(proxy.asked, ['CONNECT mock.test:443'])
  })

  test('names are handed over where the config says that the proxy resolves', async t => {
    const { proxy, lookups, fetch } = await setup(t, { config: { proxyResolves: true } })
    assert.equal((await fetch('https://mock.test/page')).body.content, 'mock.test/page')
    assert.deepEqual(proxy.asked, ['CONNECT mock.test:443'])
    assert.deepEqual(lookups, [])
  })

  test('a host of NO_PROXY is asked directly', async t => {
    const { proxy, open, fetch } = await setup(t, {
      env: { NO_PROXY: '.test' },
      config: { allowHosts: ['site.test'] },
      ground: { names: { 'site.test': [['127.0.0.1']] } },
    })
    assert.equal((await fetch(`http://site.test:${open.port}/x`)).body.content, `site.test:${open.port}/x`)
    assert.deepEqual(proxy.asked, [])
  })

  test('an address of IPv6 is written as one', async t => {
    const { proxy, fetch } = await setup(t, { ground: { names: { 'six.test': [['2606:4700::1']] } } })
    await assert.rejects(fetch('https://six.test/'))
    assert.deepEqual(proxy.asked.at(0), 'CONNECT [2606:4700::1]:443')
  })
})

describe('a proxy', () => {
  test('is given its login', async t => {
    const login = `Basic ${Buffer.from('user:p@ss').toString('base64')}`
    const { proxy } = await setup(t, { rules: { login } })
    const { fetch } = testFetch(
      { proxyResolves: true },
      { readCa, env: name => (name === 'HTTPS_PROXY' ? `http://user:p%40ss@${proxy.host}` : undefined) },
    )
    await assert.rejects(fetch('https://other.test/'), {
      message: /refuses to connect to other.test:443 \(403\)/,
    })
  })

  test('that wants another login says which variable takes it, and does not repeat the old one', async t => {
    const { proxy } = await setup(t, { rules: { login: 'Basic other' } })
    const { fetch } = testFetch(
      {},
      { env: () => `http://user:secretword@${proxy.host}`, names: publicName, judgeAddress: refuseLocal },
    )
    await assert.rejects(fetch('https://mock.test/'), {
      code: 'WEB_PROVIDER_ERROR',
      message: `proxy ${proxy.host} wants a login (407); set HTTPS_PROXY to http://user:password@${proxy.host}`,
    })
  })

  test('that is down is named, without its login', async () => {
    const { fetch } = testFetch(
      {},
      {
        env: name =>
          name.endsWith('Y') && name !== 'NO_PROXY' ? 'http://user:secretword@127.0.0.1:9' : undefined,
        names: publicName,
        judgeAddress: refuseLocal,
      },
    )
    await assert.rejects(fetch('https://mock.test/'), {
      code: 'WEB_PROVIDER_ERROR',
      message:
        'proxy 127.0.0.1:9 cannot be reached (ECONNREFUSED); check HTTPS_PROXY, or list the host in NO_PROXY',
    })
  })

  test('of a kind that cannot be used is named by its variable', async () => {
    const { fetch } = testFetch(
      {},
      { env: name => (name === 'HTTPS_PROXY' ? 'socks5://u:secretword@h:1' : undefined) },
    )
    await assert.rejects(fetch('https://mock.test/'), {
      code: 'WEB_PROVIDER_ERROR',
      message: 'HTTPS_PROXY is no http or https URL; a proxy of another kind cannot be used',
    })
  })
})

describe('an http page', () => {
  test('is asked for over https first', async t => {
    const { proxy, open, fetch } = await setup(t)
    const { url, body } = await fetch('http://mock.test/page')
    assert.deepEqual([url, body.content], ['https://mock.test/page', 'mock.test/page'])
    assert.deepEqual(proxy.asked, ['CONNECT 9.9.9.9:443'])
    assert.deepEqual(open.asked, [])
  })

  for (const [why, around] of [
    ['nobody answers there', { rules: { targets: {} } }],
    ['the certificate is not trusted', { ground: { readCa: async () => undefined } }],
  ] as const) {
    test(`is asked for as it says where ${why}`, async t => {
      const open = await startSite(t, naming)
      const around80 = 'rules' in around ? { rules: { targets: { '9.9.9.9:80': open.port } } } : around
      const { proxy, fetch } = await setup(t, around80)
      const { url, body } = await fetch('http://mock.test/page')
      assert.deepEqual([url, body.content], ['http://mock.test/page', 'mock.test/page'])
      assert.deepEqual(proxy.asked, ['CONNECT 9.9.9.9:443', 'CONNECT 9.9.9.9:80'])
    })
  }

  test('that https sends back to http is read there', async t => {
    const back = await startSite(
      t,
      ({ url }, response) => void response.writeHead(301, { location: `http://mock.test${url}` }).end(),
      { tls: true },
    )
    const open = await startSite(t, naming)
    const { fetch, proxy } = await setup(t, {
      rules: { targets: { '9.9.9.9:443': back.port, '9.9.9.9:80': open.port } },
    })
    assert.equal((await fetch('http://mock.test/page')).url, 'http://mock.test/page')
    assert.deepEqual(proxy.asked, ['CONNECT 9.9.9.9:443', 'CONNECT 9.9.9.9:80'])
    const { redirect } = await fetch('https://mock.test/page')
    assert.equal(redirect, 'http://mock.test/page')
  })

  test('of which https knows nothing is not asked for twice', async t => {
    const gone = await startSite(
      t,
      (_request, response) => void response.writeHead(404, { 'content-type': 'text/plain' }).end('gone'),
      { tls: true },
    )
    const { fetch, open } = await setup(t, { rules: { targets: { '9.9.9.9:443': gone.port } } })
    assert.equal((await fetch('http://mock.test/page')).statusCode, 404)
    assert.deepEqual(open.asked, [])
  })
})

describe('a certificate', () => {
  test('that nobody vouches for is refused with what to set', async t => {
    const { secure } = await setup(t)
    const { fetch } = testFetch({ allowPorts: [secure.port] })
    await assert.rejects(fetch(`https://mock.test:${secure.port}/`), {
      code: 'WEB_PROVIDER_ERROR',
      message: `the certificate of mock.test:${secure.port} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT); for an authority of your own set NODE_EXTRA_CA_CERTS, or ca in the config of web`,
    })
  })

  test('of an authority of the config is trusted', async t => {
    const { secure } = await setup(t)
    const { fetch } = testFetch({ allowPorts: [secure.port] }, { readCa })
    assert.equal((await fetch(`https://mock.test:${secure.port}/`)).statusCode, 200)
  })

  test('has to be the one of the host, not of its address', async t => {
    const { secure } = await setup(t)
    const { fetch } = testFetch({ allowPorts: [secure.port] }, { readCa })
    await assert.rejects(fetch(`https://other.test:${secure.port}/`), {
      message: /ERR_TLS_CERT_ALTNAME_INVALID/,
    })
  })
})
