import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { HttpFetchConfig } from './fetch.ts'
import { startSite, testFetch } from './test-site.ts'
import type { Answer, Site } from './test-site.ts'

/** A site, and a provider that finds it as `site.test`. */
async function setup(t: TestContext, answer: Answer, config: Partial<HttpFetchConfig> = {}) {
  const site: Site = await startSite(t, answer)
  const { port } = site
  const { fetch } = testFetch({ allowPorts: [port], ...config })
  const url = (path: string, host = 'site.test'): string => `http://${host}:${port}${path}`
  return { site, url, get: (path: string, signal?: AbortSignal) => fetch(url(path), signal) }
}

const html = { 'content-type': 'text/html; charset=utf-8' }
const plain = { 'content-type': 'text/plain; charset=utf-8' }

test('a page comes with its address, status, kind and text', async t => {
  const { site, url, get } = await setup(t, (_request, response) =>
    response.writeHead(200, html).end('<p>é</p>'),
  )
  assert.deepEqual(await get('/a?b=c#d'), {
    url: url('/a?b=c#d'),
    statusCode: 200,
    body: { kind: 'html', content: '<p>é</p>' },
    truncated: false,
  })
  assert.deepEqual(site.asked, ['GET /a?b=c'])
  const [request] = site.requests
  assert.equal(request?.headers.host, new URL(url('/')).host)
  assert.equal(request?.headers['accept-encoding'], 'gzip, deflate, br, zstd')
  assert.equal(request?.headers['user-agent'], 'Mozilla/5.0 (compatible; dsh)')
  assert.equal(request?.headers.cookie, undefined)
})

test('an answer that is no success is a result', async t => {
  const { get } = await setup(t, ({ url }, response) =>
    response.writeHead(Number(url?.slice(1)), plain).end('why'),
  )
  for (const status of [304, 401, 404, 500, 503]) {
    const { statusCode, body } = await get(`/${status}`)
    assert.equal(statusCode, status)
    assert.equal(body.content, status === 304 ? '' : 'why')
  }
})

describe('content of a type', () => {
  const cases: readonly (readonly [type: string | undefined, body: string, kind: string])[] = [
    ['text/html', 'x', 'html'],
    ['TEXT/HTML; Charset="UTF-8"', 'x', 'html'],
    ['application/xhtml+xml', 'x', 'html'],
    ['text/markdown', 'x', 'text'],
    ['text/csv', 'x', 'text'],
    ['application/json', '{}', 'text'],
    ['application/ld+json', '{}', 'text'],
    ['application/rss+xml', '<a/>', 'text'],
    ['application/xml', '<a/>', 'text'],
    ['application/javascript', 'x', 'text'],
    [undefined, '<!doctype html><p>x', 'html'],
    [undefined, ' <!-- a --> <HTML>x', 'html'],
    [undefined, 'just words', 'text'],
    [undefined, '', 'text'],
    ['application/pdf', 'x', 'application/pdf'],
    ['image/png', 'x', 'image/png'],
    ['image/svg+xml', 'x', 'image/svg+xml'],
    ['application/octet-stream', 'x', 'application/octet-stream'],
    ['multipart/form-data', 'x', 'multipart/form-data'],
    [undefined, 'a\0b', 'a body without a type'],
  ]
  for (const [type, body, kind] of cases) {
    test(`${type ?? `none, ${JSON.stringify(body)},`} is ${kind}`, async t => {
      const { get } = await setup(t, (_request, response) =>
        response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(body),
      )
      if (kind === 'html' || kind === 'text') return assert.equal((await get('/')).body.kind, kind)
      await assert.rejects(get('/'), {
        code: 'WEB_UNSUPPORTED_CONTENT_TYPE',
        message: `${kind} cannot be read; html, text, json and xml can`,
      })
    })
  }
})

test('a body of a type that is not read is never waited for', async t => {
  const { get } = await setup(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'video/mp4' })
    response.write('x')
  })
  await assert.rejects(get('/'), { code: 'WEB_UNSUPPORTED_CONTENT_TYPE' })
})

describe('text in', () => {
  const gbk = Buffer.from([0xd6, 0xd0, 0xce, 0xc4])
  const sjis = Buffer.from([0x93, 0xfa, 0x96, 0x7b])
  const page = (head: string, text: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`<html><head>${head}</head><body>`), text, Buffer.from('</body></html>')])
  const cases: readonly (readonly [name: string, type: string, body: Buffer, expected: string])[] = [
    ['GBK by header', 'text/plain; charset=gbk', gbk, '中文'],
    ['GB2312 by header', 'text/plain; charset=GB2312', gbk, '中文'],
    ['GBK by meta', 'text/html', page('<meta charset=gbk>', gbk), '中文'],
    [
      'Shift_JIS by http-equiv',
      'text/html',
      page('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', sjis),
      '日本',
    ],
    [
      'Shift_JIS by an XML declaration',
      'application/xml',
      Buffer.concat([Buffer.from('<?xml version="1.0" encoding="Shift_JIS"?>'), sjis]),
      '日本',
    ],
    ['windows-1252 that nobody names', 'text/plain', Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x80]), 'café€'],
    ['UTF-8 that nobody names', 'text/plain', Buffer.from('日本'), '日本'],
    ['UTF-8 by its mark, against the header', 'text/plain; charset=gbk', Buffer.from('\uFEFF日本'), '日本'],
    ['UTF-16LE by its mark', 'text/plain', Buffer.from('\uFEFF日本', 'utf16le'), '日本'],
    ['UTF-16BE by its mark', 'text/html', Buffer.from('\uFEFF日本', 'utf16le').swap16(), '日本'],
    ['what a name that nobody knows stands for', 'text/plain; charset=klingon', Buffer.from('日本'), '日本'],
    [
      'UTF-8 that claims UTF-16 in ASCII',
      'text/html',
      page('<meta charset="utf-16">', Buffer.from('日本')),
      '日本',
    ],
    [
      'the header before meta',
      'text/html; charset=utf-8',
      page('<meta charset="gbk">', Buffer.from('日本')),
      '日本',
    ],
    ['plain text that speaks of meta', 'text/plain', Buffer.from('<meta charset="gbk">日本'), '日本'],
  ]
  for (const [name, type, body, expected] of cases) {
    test(`${name} is read`, async t => {
      const { get } = await setup(t, (_request, response) =>
        response.writeHead(200, { 'content-type': type }).end(body),
      )
      const { content } = (await get('/')).body
      assert.ok(content.includes(expected), content)
      assert.ok(!content.startsWith('\uFEFF'))
    })
  }
})

describe('a body that is encoded as', () => {
  const encoders: Readonly<Record<string, (text: string) => Buffer>> = {
    gzip: gzipSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
    deflate: deflateSync,
    'DEFLATE ': deflateRawSync,
    'gzip, br': text => brotliCompressSync(gzipSync(text)),
    identity: text => Buffer.from(text),
  }
  for (const [coding, encode] of Object.entries(encoders)) {
    test(`${coding} is decoded`, async t => {
      const { get } = await setup(t, (_request, response) =>
        response.writeHead(200, { ...plain, 'content-encoding': coding }).end(encode('word '.repeat(1000))),
      )
      assert.equal((await get('/')).body.content, 'word '.repeat(1000))
    })

    if (coding === 'identity') continue
    test(`${coding} and swells is cut at the limit`, async t => {
      const bomb = encode('\0'.repeat(2_000_000))
      const { get } = await setup(
        t,
        (_request, response) => response.writeHead(200, { ...plain, 'content-encoding': coding }).end(bomb),
        { maxResponseBytes: 100_000 },
      )
      const { body, truncated } = await get('/')
      assert.deepEqual({ length: body.content.length, truncated }, { length: 100_000, truncated: true })
    })
  }

  for (const [coding, body] of [
    ['gzip', 'this is not gzip'],
    ['br', 'this is not brotli'],
    ['zstd', 'this is not zstd'],
    ['deflate', 'x this is not deflate'],
    ['gzip', gzipSync('word '.repeat(100)).subarray(0, 20)],
  ] as const) {
    test(`${coding} and is broken is refused`, async t => {
      const { get } = await setup(t, (_request, response) =>
        response.writeHead(200, { ...plain, 'content-encoding': coding }).end(body),
      )
      await assert.rejects(get('/'), {
        code: 'WEB_PROVIDER_ERROR',
        message: 'the body cannot be decoded; it is broken',
      })
    })
  }

  for (const coding of ['compress', 'gzip, gzip, gzip, gzip']) {
    test(`${coding} is refused by name`, async t => {
      const { get } = await setup(t, (_request, response) =>
        response.writeHead(200, { ...plain, 'content-encoding': coding }).end('x'),
      )
      await assert.rejects(get('/'), {
        code: 'WEB_PROVIDER_ERROR',
        message: `the body is encoded as ${JSON.stringify(coding)}`,
      })
    })
  }
})

describe('of a body', () => {
  const config = { maxResponseBytes: 10 }
  test('that declares more than the limit nothing is read', async t => {
    const { get } = await setup(
      t,
      (_request, response) => {
        response.writeHead(200, { ...plain, 'content-length': 11 })
        response.flushHeaders()
      },
      config,
    )
    await assert.rejects(get('/'), {
      code: 'WEB_FETCH_TOO_LARGE',
      message: 'the body has 11 bytes, more than 10',
    })
  })

  for (const [length, truncated] of [
    [9, false],
    [10, false],
    [11, true],
    [1000, true],
  ] as const) {
    test(`that streams ${length} of 10 bytes the beginning is ${truncated ? 'kept' : 'all'}`, async t => {
      const { get } = await setup(
        t,
        (_request, response) => {
          response.writeHead(200, plain)
          for (let count = 0; count < length; count++) response.write('x')
          response.end()
        },
        config,
      )
      const result = await get('/')
      assert.equal(result.body.content, 'x'.repeat(Math.min(length, 10)))
      assert.equal(result.truncated, truncated)
    })
  }

  test('that never ends the beginning is kept, and the connection ends', async t => {
    const closed = Promise.withResolvers<void>()
    const { get } = await setup(
      t,
      (_request, response) => {
        response.writeHead(200, plain)
        response.once('close', closed.resolve)
        const more = (): void => {
          while (!response.destroyed && response.write('y\n'.repeat(5000)));
          if (!response.destroyed) response.once('drain', more)
        }
        more()
      },
      { maxResponseBytes: 100_000 },
    )
    const { body, truncated } = await get('/')
    assert.deepEqual({ length: body.content.length, truncated }, { length: 100_000, truncated: true })
    await closed.promise
  })

  test('that breaks off nothing is made up', async t => {
    const { url, get } = await setup(t, (_request, response) => {
      response.writeHead(200, { ...plain, 'content-length': 100 })
      response.write('half', () => response.destroy())
    })
    await assert.rejects(get('/'), {
      code: 'WEB_PROVIDER_ERROR',
      message: `${new URL(url('/')).host} cannot be reached (ECONNRESET)`,
    })
  })
})

test('headers that are too large are refused', async t => {
  const { url, get } = await setup(t, (_request, response) =>
    response.writeHead(200, { ...plain, 'x-much': 'x'.repeat(70_000) }).end(),
  )
  await assert.rejects(get('/'), {
    code: 'WEB_PROVIDER_ERROR',
    message: `the headers of ${new URL(url('/')).host} are too large`,
  })
})

test('what does not speak HTTP is said so', async t => {
  const { get } = await setup(t, (request, response) => {
    response.socket?.end('SSH-2.0-OpenSSH\r\n')
    request.resume()
  })
  await assert.rejects(get('/'), { code: 'WEB_PROVIDER_ERROR', message: /does not speak HTTP \(HPE_/ })
})

test('a host that is not there, or not known, is named', async t => {
  const { port } = await startSite(t, () => {})
  const { fetch } = testFetch({ allowPorts: [port, 9] })
  await assert.rejects(fetch('http://site.test:9/'), {
    code: 'WEB_PROVIDER_ERROR',
    message: 'site.test:9 cannot be reached (ECONNREFUSED)',
  })
  await assert.rejects(fetch('https://nowhere.test/'), {
    code: 'WEB_PROVIDER_ERROR',
    message: 'nowhere.test cannot be found (ENOTFOUND)',
  })
})

describe('time is up', () => {
  test('for an answer that does not begin', async t => {
    const asked = Promise.withResolvers<void>()
    const { get } = await setup(t, () => asked.resolve())
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const result = assert.rejects(get('/'), {
      code: 'WEB_FETCH_TIMEOUT',
      message: 'site.test did not answer in full within 30000 ms',
    })
    await asked.promise
    t.mock.timers.tick(30_000)
    await result
  })

  test('for a body that stops', async t => {
    const { site, get } = await setup(
      t,
      (_request, response) => {
        response.writeHead(200, plain)
        response.write('some')
      },
      { timeoutMs: 2_000_000_000 },
    )
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let isOver = false
    const result = assert
      .rejects(get('/'), { code: 'WEB_FETCH_TIMEOUT', message: 'site.test sent nothing for 10000 ms' })
      .finally(() => {
        isOver = true
      })
    for (; !isOver; await turn()) if (site.asked.length > 0) t.mock.timers.tick(1000)
    await result
  })

  test('for a name that is never found', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { fetch } = testFetch({}, { resolve: () => new Promise(() => {}) })
    const result = assert.rejects(fetch('https://slow.test/'), { code: 'WEB_FETCH_TIMEOUT' })
    t.mock.timers.tick(30_000)
    await result
  })
})

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

describe('whoever waits may give up', () => {
  const reason = new Error('enough')

  test('before anything is done', async t => {
    const { site, get } = await setup(t, (_request, response) => response.writeHead(200, plain).end())
    await assert.rejects(get('/', AbortSignal.abort(reason)), reason)
    assert.deepEqual(site.asked, [])
  })

  test('while nothing is answered', async t => {
    const controller = new AbortController()
    const { get } = await setup(t, () => controller.abort(reason))
    await assert.rejects(get('/', controller.signal), reason)
  })

  test('in the middle of a body, and the other side learns of it', async t => {
    const controller = new AbortController()
    const closed = Promise.withResolvers<void>()
    const { get } = await setup(t, (_request, response) => {
      response.once('close', closed.resolve)
      response.writeHead(200, plain)
      response.write('some', () => controller.abort(reason))
    })
    await assert.rejects(get('/', controller.signal), reason)
    await closed.promise
  })
})

test('nothing is left open after a refusal', async t => {
  const { site, get } = await setup(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'image/png' })
    response.write('x')
  })
  await assert.rejects(get('/'))
  const [request] = site.requests
  if (request !== undefined && !request.socket.destroyed) await once(request.socket, 'close')
})
