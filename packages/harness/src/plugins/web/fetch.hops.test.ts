import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { refuseLocal } from './address.ts'
import type { HttpFetchConfig } from './fetch.ts'
import { nextHop } from './redirect.ts'
import { startSite, testFetch } from './test-site.ts'
import type { TestGround } from './test-site.ts'

/** `/to/X` redirects to X, anything else is a page that names itself. */
const redirecting: RequestListener = (request, response) => {
  const url = request.url ?? ''
  if (!url.startsWith('/to/')) return void response.writeHead(200, { 'content-type': 'text/plain' }).end(url)
  response.writeHead(302, { location: decodeURIComponent(url.slice('/to/'.length)) })
  response.write('a body that never ends')
}

async function setup(t: TestContext, config: Partial<HttpFetchConfig> = {}, ground: TestGround = {}) {
  const site = await startSite(t, redirecting)
  const { fetch, lookups } = testFetch({ allowPorts: [site.port], ...config }, ground)
  const at = (path: string, host = 'site.test'): string => `http://${host}:${site.port}${path}`
  const via = (location: string): string => at(`/to/${encodeURIComponent(location)}`)
  return { site, fetch, lookups, at, via }
}

test('a redirect to the same site is followed', async t => {
  const { fetch, at, via } = await setup(t)
  for (const location of ['/page', 'http:/page', at('/page')]) {
    const { url, statusCode, body } = await fetch(via(location))
    assert.deepEqual(
      { url, statusCode, content: body.content },
      { url: at('/page'), statusCode: 200, content: '/page' },
    )
  }
})

test('a redirect keeps the fragment that was asked for, unless it names one', async t => {
  const { fetch, at, via } = await setup(t)
  assert.equal((await fetch(`${via('/page')}#a`)).url, at('/page#a'))
  assert.equal((await fetch(`${via('/page#b')}#a`)).url, at('/page#b'))
})

test('a redirect to the same host with www is followed', async t => {
  const { fetch, at, via } = await setup(t)
  assert.equal((await fetch(via(at('/page', 'www.site.test')))).url, at('/page', 'www.site.test'))
})

test('a redirect to another site is told and not followed', async t => {
  const { site, fetch, lookups, at, via } = await setup(t)
  const from = via(at('/page', 'other.test'))
  assert.deepEqual(await fetch(from), {
    url: from,
    statusCode: 302,
    body: { kind: 'text', content: '' },
    truncated: false,
    redirect: at('/page', 'other.test'),
  })
  assert.equal(site.asked.length, 1)
  assert.deepEqual(lookups, ['site.test'])
})

for (const location of [
  'http://127.0.0.2/',
  'http://169.254.169.254/latest/',
  'http://[::ffff:10.0.0.1]/',
  'http://0x0a.1/',
  'http://localhost/',
  'http://x.internal/',
  'http://other.test:22/',
]) {
  test(`a redirect to ${location} is refused`, async t => {
    const { site, fetch, lookups, via } = await setup(t)
    await assert.rejects(fetch(via(location)), {
      code: 'WEB_BLOCKED_URL',
      message: /^the answer is a redirect: /,
    })
    assert.equal(site.asked.length, 1)
    assert.deepEqual(lookups, ['site.test'])
  })
}

for (const location of [
  'ftp://site.test/',
  'file:///etc/passwd',
  'data:text/plain,x',
  'http://a:secretword@site.test/',
]) {
  test(`a redirect to ${location} is no page`, async t => {
    const { fetch, via } = await setup(t)
    await assert.rejects(fetch(via(location)), (error: Error & { code: string }) => {
      assert.equal(error.code, 'WEB_INVALID_URL')
      return !error.message.includes('secretword')
    })
  })
}

test('a redirect to what is no URL is refused', async t => {
  const { fetch, via } = await setup(t)
  await assert.rejects(fetch(via('http://[/')), { code: 'WEB_REDIRECT_BLOCKED' })
})

test('a redirect that names no place is a page', async t => {
  const site = await startSite(t, (_request, response) => response.writeHead(302).end('nowhere'))
  const { fetch } = testFetch({ allowPorts: [site.port] })
  const { statusCode, body, redirect } = await fetch(`http://site.test:${site.port}/`)
  assert.deepEqual([statusCode, body.content, redirect], [302, 'nowhere', undefined])
})

for (const [maxRedirects, hops, follows] of [
  [5, 5, true],
  [5, 6, false],
  [0, 0, true],
  [0, 1, false],
] as const) {
  test(`a redirect number ${hops} of at most ${maxRedirects} is ${follows ? 'followed' : 'refused'}`, async t => {
    const site = await startSite(t, ({ url = '' }, response) => {
      const left = Number(url.slice(1))
      if (left === 0) response.writeHead(200, { 'content-type': 'text/plain' }).end('there')
      else response.writeHead(307, { location: `/${left - 1}` }).end()
    })
    const { fetch } = testFetch({ allowPorts: [site.port], maxRedirects })
    const result = fetch(`http://site.test:${site.port}/${hops}`)
    if (follows) return assert.equal((await result).body.content, 'there')
    const message = `more than ${maxRedirects} redirects; the last one leads to http://site.test:${site.port}/0`
    await assert.rejects(result, { code: 'WEB_REDIRECT_BLOCKED', message })
  })
}

const hop = (from: string, location: string, allowsDowngrade = false): boolean | undefined =>
  nextHop(new URL(from), { statusCode: 301, headers: { location } }, { allowsDowngrade })?.isSameSite

test('a redirect stays on the site where only the scheme becomes a safer one', () => {
  assert.equal(hop('http://a.com/', 'https://a.com/x'), true)
  assert.equal(hop('http://a.com/', 'https://www.a.com/x'), true)
  assert.equal(hop('https://www.a.com/', 'https://a.com/x'), true)
  assert.equal(hop('https://a.com/', 'http://a.com/x'), false)
  assert.equal(hop('https://a.com/', 'http://a.com/x', true), true)
  assert.equal(hop('https://a.com/', 'https://b.a.com/x'), false)
  assert.equal(hop('https://a.com/', 'https://a.com:8443/x'), false)
  assert.equal(hop('https://a.com/', 'https://a.com.evil.com/'), false)
  assert.equal(hop('https://a.com/', '//b.com/'), false)
})

describe('a name', () => {
  const isBlocked = { code: 'WEB_BLOCKED_URL' }

  for (const address of [
    '127.0.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '::1',
    '::ffff:127.0.0.1',
    '64:ff9b::a9fe:a9fe',
  ]) {
    test(`that stands for ${address} is refused unasked`, async t => {
      const { site, fetch, at } = await setup(
        t,
        {},
        { judgeAddress: refuseLocal, names: { 'evil.test': [[address]] } },
      )
      await assert.rejects(fetch(at('/', 'evil.test')), {
        ...isBlocked,
        message: new RegExp(`^evil\\.test \\(${address.replaceAll('.', '\\.')}\\) may not be reached: `),
      })
      assert.deepEqual(site.asked, [])
    })
  }

  test('that stands for a public and a private address is refused', async t => {
    const { fetch, at } = await setup(t, {}, { names: { 'evil.test': [['127.0.0.1', '10.0.0.1']] } })
    await assert.rejects(fetch(at('/', 'evil.test')), isBlocked)
  })

  test('is looked up once a hop, and nothing else is connected to', async t => {
    // What it resolves to later would be refused; the connection must go to what was judged.
    const names = { 'rebind.test': [['127.0.0.1'], ['10.0.0.1']] }
    const { site, fetch, lookups, at } = await setup(t, {}, { names })
    assert.equal((await fetch(at('/page', 'rebind.test'))).body.content, '/page')
    assert.deepEqual(lookups, ['rebind.test'])
    assert.equal(site.requests[0]?.headers.host, `rebind.test:${site.port}`)
  })

  test('that changes between two hops is judged again', async t => {
    const names = { 'rebind.test': [['127.0.0.1'], ['10.0.0.1']] }
    const { site, fetch, lookups, at } = await setup(t, {}, { names })
    await assert.rejects(fetch(at('/to/%2Fpage', 'rebind.test')), isBlocked)
    assert.deepEqual(lookups, ['rebind.test', 'rebind.test'])
    assert.equal(site.asked.length, 1)
  })

  test('that a person allows is asked wherever it is', async t => {
    const ground = { judgeAddress: refuseLocal, names: { 'wiki.lan': [['127.0.0.1']] } }
    const { fetch, at } = await setup(t, { allowHosts: ['wiki.lan'], allowPorts: [] }, ground)
    assert.equal((await fetch(at('/page', 'wiki.lan'))).body.content, '/page')
    await assert.rejects(fetch(at('/page', 'other.test')), isBlocked)
  })
})

test('a real server on this machine is never asked, however its address is written', async t => {
  const { site, fetch } = await setup(t, {}, { judgeAddress: refuseLocal })
  const hosts = [
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '0177.1',
    '[::ffff:127.0.0.1]',
    'localhost',
    'localhost.',
  ]
  for (const host of hosts)
    await assert.rejects(fetch(`http://${host}:${site.port}/`), { code: 'WEB_BLOCKED_URL' })
  assert.deepEqual(site.asked, [])
})
