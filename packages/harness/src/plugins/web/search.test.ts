import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { SessionEvent } from '@dsh/protocol'
import { createHarness } from '../../testing/index.ts'
import { web } from './index.ts'
import type { WebInput } from './index.ts'
import { startSite } from './test-site.ts'
import type { Answer } from './test-site.ts'

async function mounted(config: WebInput) {
  const { ctx, agent } = await createHarness()
  await ctx.plugin(web, { fetch: false, ...config })
  return { ctx, session: agent().session }
}

async function bodyOf(request: IncomingMessage | undefined): Promise<unknown> {
  const parts: Buffer[] = []
  if (request !== undefined) for await (const part of request) parts.push(part as Buffer)
  return JSON.parse(Buffer.concat(parts).toString('utf8'))
}

const json =
  (value: unknown, status = 200): Answer =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))

const canary = 'sk-canary-word'

const found = {
  content: [
    { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
    {
      type: 'web_search_tool_result',
      content: [
        { type: 'web_search_result', url: 'https://a.test/', title: 'A', page_age: '2 days' },
        { type: 'web_search_result', url: 'https://a.test/', title: 'A again' },
        { type: 'web_search_result', url: 'javascript:x' },
        { type: 'web_search_result', url: 'https://b.test/' },
      ],
    },
    { type: 'text', text: 'An answer, ' },
    { type: 'text', text: 'in two parts.' },
  ],
  usage: { input_tokens: 12, output_tokens: 34, cache_read_input_tokens: 5 },
}

async function setup(t: TestContext, answer: Answer, env: Record<string, string> = {}) {
  const site = await startSite(t, answer)
  const base = `http://127.0.0.1:${site.port}`
  const around = { DEEPSEEK_API_KEY: canary, DEEPSEEK_BASE_URL: base, ...env }
  return { site, base, env: around, ...(await mounted({ env: around })) }
}

const logged = (events: readonly SessionEvent[]): unknown[] =>
  events.flatMap(({ type, data }) => (type.startsWith('web/') ? [[type, data]] : []))

test('search by DeepSeek gives the answer and its sources, each once', async t => {
  const bodies: unknown[] = []
  const { site, ctx } = await setup(t, async (request, response) => {
    bodies.push(await bodyOf(request))
    json(found)(request, response)
  })
  assert.deepEqual(await ctx.web.search({ query: 'what is new' }), {
    content: 'An answer, in two parts.',
    sources: [{ url: 'https://a.test/', title: 'A', publishedAt: '2 days' }, { url: 'https://b.test/' }],
    truncated: false,
  })
  assert.deepEqual(site.asked, ['POST /anthropic/v1/messages'])
  assert.equal(site.requests[0]?.headers['x-api-key'], canary)
  assert.deepEqual(bodies, [
    {
      model: 'deepseek-flash',
      max_tokens: 4096,
      thinking: { type: 'disabled' },
      messages: [
        {
          role: 'user',
          content:
            'Search the web for the following and sum up what you find, naming the sources:\n\nwhat is new',
        },
      ],
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }],
    },
  ])
})

test('search by DeepSeek is in the log of its session before it is sent, with what it took after, and without the key', async t => {
  const { base, ctx, session } = await setup(t, (request, response) => {
    assert.equal(session.events.at(-1)?.type, 'web/deepseek-search-llm-request')
    json(found)(request, response)
  })
  await ctx.web.search({ query: 'what', session })
  const requestSeq = session.seq - 2
  assert.deepEqual(logged(session.events), [
    [
      'web/deepseek-search-llm-request',
      {
        url: `${base}/anthropic/v1/messages`,
        model: 'deepseek-flash',
        query: 'what',
        maxTokens: 4096,
        maxUses: 5,
      },
    ],
    [
      'web/deepseek-search-llm-result',
      { requestSeq, usage: { inputTokens: 12, outputTokens: 34, cacheReadTokens: 5 } },
    ],
  ])
  assert.ok(!JSON.stringify(session.events).includes(canary))
})

const failures: readonly (readonly [what: string, answer: Answer, message: string | RegExp])[] = [
  [
    'an answer without a search',
    json({ content: [{ type: 'text', text: 'I know' }] }),
    'DeepSeek answered without a search',
  ],
  [
    'a search that failed',
    json({
      content: [
        {
          type: 'web_search_tool_result',
          content: { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' },
        },
      ],
    }),
    'the search by DeepSeek failed: max_uses_exceeded',
  ],
  [
    'a refused key',
    json({ error: { message: `bad key ${canary}` } }, 401),
    /refuses the key \(HTTP 401\): bad key \*\*\*$/,
  ],
  ['an error in words', json({ error: 'out of money' }, 402), /answered HTTP 402: out of money$/],
  ['an error with a message', json({ message: 'a\nb' }, 500), /answered HTTP 500: a b$/],
  [
    'an error in HTML',
    (_request, response) => void response.writeHead(502).end('<html>Bad'),
    /answered HTTP 502$/,
  ],
  [
    'an error without a body',
    (_request, response) => void response.writeHead(503).end(),
    /answered HTTP 503$/,
  ],
  ['no JSON', (_request, response) => void response.writeHead(200).end('hello'), /did not answer in JSON$/],
]
for (const [what, answer, message] of failures) {
  test(`search by DeepSeek takes ${what} for an error that it names, in the log too`, async t => {
    const { ctx, session } = await setup(t, answer)
    await assert.rejects(ctx.web.search({ query: 'x', session }), { code: 'WEB_PROVIDER_ERROR', message })
    const last = session.events.at(-1)
    assert.equal(last?.type, 'web/deepseek-search-llm-result')
    assert.ok(!JSON.stringify(session.events).includes(canary))
  })
}

test('search by DeepSeek that finds nothing is no error', async t => {
  const { ctx } = await setup(t, json({ content: [{ type: 'web_search_tool_result', content: [] }] }))
  assert.deepEqual(await ctx.web.search({ query: 'x' }), { sources: [], truncated: false })
})

test('search by DeepSeek never follows a redirect with its key', async t => {
  const other = await startSite(t, json(found))
  const { ctx } = await setup(
    t,
    (_request, response) =>
      void response.writeHead(307, { location: `http://127.0.0.1:${other.port}/` }).end(),
  )
  await assert.rejects(ctx.web.search({ query: 'x' }), { code: 'WEB_REDIRECT_BLOCKED' })
  assert.deepEqual(other.asked, [])
})

test('search by DeepSeek takes the key that is set at the time of the search', async t => {
  const { site, env, ctx } = await setup(t, json(found))
  await ctx.web.search({ query: 'x' })
  env.DEEPSEEK_API_KEY = 'another'
  await ctx.web.search({ query: 'x' })
  assert.deepEqual(
    site.requests.map(({ headers }) => headers['x-api-key']),
    [canary, 'another'],
  )
  env.DEEPSEEK_API_KEY = 'not usabl\u00e9'
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_CREDENTIAL_MISSING',
    message:
      'no usable key for search by DeepSeek: set DEEPSEEK_API_KEY (character 4 of 10 is not printable ASCII, which no key holds; copy it again)',
  })
  env.DEEPSEEK_API_KEY = ' '
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_UNAVAILABLE',
    message: 'no search provider can be used: set DEEPSEEK_API_KEY (deepseek)',
  })
})

test('search by DeepSeek ends when its caller gives up, and says so in the log', async t => {
  const controller = new AbortController()
  const { ctx, session } = await setup(t, () => controller.abort(new Error('enough')))
  await assert.rejects(ctx.web.search({ query: 'x', session }, controller.signal), { code: 'WEB_ABORTED' })
  assert.deepEqual(logged(session.events).at(-1), [
    'web/deepseek-search-llm-result',
    { requestSeq: session.seq - 2, problem: 'aborted' },
  ])
})

const brave = (port: number): NonNullable<NonNullable<WebInput>['json']>[string] => ({
  url: `http://127.0.0.1:${port}/search?q={query}&count={count}`,
  headers: { 'X-Subscription-Token': '{key}' },
  apiKeyEnv: 'BRAVE_API_KEY',
  results: '/web/results',
  fields: { snippet: '/description', publishedAt: '/age' },
})

test('search by a service fills in the query, the count and the key, and reads what the pointers name', async t => {
  const site = await startSite(
    t,
    json({
      web: {
        results: [
          { url: 'https://a.test/x', title: ' A ', description: 'said', age: '2026-01-02' },
          { url: 'https://b.test/' },
          { url: 'ftp://c.test/' },
          { title: 'no address' },
          'nothing',
        ],
      },
    }),
  )
  const { ctx } = await mounted({
    deepseek: false,
    env: { BRAVE_API_KEY: canary },
    json: { brave: brave(site.port) },
  })
  assert.deepEqual(await ctx.web.search({ query: 'a b&{key}/中', maxResults: 7 }), {
    sources: [
      { url: 'https://a.test/x', title: 'A', snippet: 'said', publishedAt: '2026-01-02' },
      { url: 'https://b.test/' },
    ],
    truncated: false,
  })
  assert.deepEqual(site.asked, ['GET /search?q=a%20b%26%7Bkey%7D%2F%E4%B8%AD&count=7'])
  assert.equal(site.requests[0]?.headers['x-subscription-token'], canary)
})

test('search by a service sends a body where it has one, in which only whole texts are places', async t => {
  const bodies: unknown[] = []
  const site = await startSite(t, async (request, response) => {
    bodies.push(await bodyOf(request))
    json({ answer: 'Because.', results: [{ url: 'https://a.test/', highlights: ['first', 'second'] }] })(
      request,
      response,
    )
  })
  const service = {
    url: `http://127.0.0.1:${site.port}/`,
    method: 'POST',
    body: {
      query: '{query}',
      max_results: '{count}',
      key: '{key}',
      list: ['{query}', 'not {query}'],
      deep: { on: true },
    },
    apiKeyEnv: 'KEY',
    fields: { snippet: '/highlights' },
    answer: '/answer',
  } as const
  const { ctx } = await mounted({ deepseek: false, env: { KEY: canary }, json: { tavily: service } })
  assert.deepEqual(await ctx.web.search({ query: '{count}', maxResults: 3 }), {
    content: 'Because.',
    sources: [{ url: 'https://a.test/', snippet: 'first' }],
    truncated: false,
  })
  assert.deepEqual(bodies, [
    { query: '{count}', max_results: 3, key: canary, list: ['{count}', 'not {query}'], deep: { on: true } },
  ])
})

test('search by a service that answers otherwise is named', async t => {
  const site = await startSite(t, json({ web: { results: 'none' } }))
  const { ctx } = await mounted({
    deepseek: false,
    env: { BRAVE_API_KEY: canary },
    json: { brave: brave(site.port) },
  })
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_ERROR',
    message: 'the answer of search provider brave has no list at /web/results',
  })
})

test('search by a service without its key says which variable to set', async () => {
  const { ctx } = await mounted({ deepseek: false, json: { brave: brave(9) } })
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_UNAVAILABLE',
    message: 'no search provider can be used: set BRAVE_API_KEY (brave)',
  })
})

test('search by a service never follows a redirect with its key', async t => {
  const other = await startSite(t, json({ web: { results: [] } }))
  const site = await startSite(
    t,
    (_request, response) =>
      void response.writeHead(302, { location: `http://127.0.0.1:${other.port}/` }).end(),
  )
  const { ctx } = await mounted({
    deepseek: false,
    env: { BRAVE_API_KEY: canary },
    json: { brave: brave(site.port) },
  })
  await assert.rejects(ctx.web.search({ query: 'x' }), { code: 'WEB_REDIRECT_BLOCKED' })
  assert.deepEqual(other.asked, [])
})

test('search by a service that cannot be reached is named without its key', async () => {
  const service = { url: 'http://127.0.0.1:9/{key}?q={query}', apiKeyEnv: 'KEY' }
  const { ctx } = await mounted({ deepseek: false, env: { KEY: canary }, json: { mine: service } })
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_ERROR',
    message: '127.0.0.1:9 cannot be reached (ECONNREFUSED)',
  })
})
