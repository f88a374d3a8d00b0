import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { ToolExecutionResult } from '../../core/tools/index.ts'
import type { Agent } from '../../core/agent/index.ts'
import { createHarness } from '../../testing/index.ts'
import { web, WebError } from './index.ts'
import type { WebFetchResult, WebInput, WebSearchResult } from './index.ts'

type Search = (query: string, signal: AbortSignal) => Promise<WebSearchResult>

interface World {
  readonly page?: Partial<WebFetchResult> | (() => Promise<WebFetchResult>)
  readonly search?: Search
  readonly config?: WebInput
}

const page: WebFetchResult = {
  url: 'https://site.test/final',
  statusCode: 200,
  body: { kind: 'text', content: 'words\n' },
  truncated: false,
}

async function setup({ page: given = {}, search, config = {} }: World = {}) {
  const { ctx, agent: create } = await createHarness()
  await ctx.plugin(web, { fetchProvider: 'fake', deepseek: false, ...config })
  ctx.web.registerFetchProvider({
    id: 'fake',
    available: () => true,
    fetch: async () => (typeof given === 'function' ? await given() : { ...page, ...given }),
  })
  if (search !== undefined) {
    ctx.web.registerSearchProvider({
      id: 'fake',
      available: () => true,
      search: ({ query }, signal) => search(query, signal),
    })
  }
  const agent = create()
  const call = (
    name: string,
    args: object,
    signal = new AbortController().signal,
    by: Agent | undefined = agent,
  ) => ctx.tools.execute({ callId: CallId('c'), name, arguments: args, signal, ...(by && { agent: by }) })
  return { ctx, agent, call, fetch: () => call('web_fetch', { url: 'https://site.test/' }) }
}

function textOf({ content }: ToolExecutionResult): string {
  return content.map(block => (block.type === 'text' ? block.text : '')).join('')
}

test('what a model is told of both tools', async () => {
  const { ctx } = await setup()
  const [fetch, search] = ['web_fetch', 'web_search'].map(name => ctx.tools.get(name))
  assert.deepEqual(
    [fetch?.description, fetch?.parameters],
    [
      'Read a web page as Markdown, or another text on the web as it is.',
      { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] },
    ],
  )
  assert.deepEqual(
    [search?.description, search?.parameters],
    [
      'Search the web. Gives addresses to read with web_fetch, and answers where the provider has them.',
      {
        type: 'object',
        properties: {
          queries: { type: 'array', items: { type: 'string' }, description: '1-4, run together' },
        },
        required: ['queries'],
      },
    ],
  )
  assert.deepEqual([fetch?.timeoutMs, search?.timeoutMs], [30_000, 60_000])
  assert.deepEqual([fetch?.deferred, search?.deferred], [true, true])
  assert.deepEqual(
    ctx.tools
      .schemas()
      .map(({ name }) => name)
      .filter(name => name.startsWith('web_')),
    [],
  )
})

test('both run beside others, and say what they do to the world', async () => {
  const { ctx } = await setup()
  const fetch = { name: 'web_fetch', arguments: { url: 'https://a.test/' } }
  const search = { name: 'web_search', arguments: { queries: ['a'] } }
  assert.deepEqual(
    [ctx.tools.executionMode(fetch), ctx.tools.executionMode(search)],
    ['parallel', 'parallel'],
  )
  assert.deepEqual(await ctx.tools.effectsOf(fetch), [{ kind: 'fetch', url: 'https://a.test/' }])
  assert.deepEqual(await ctx.tools.effectsOf(search), [])
})

const cases: readonly (readonly [what: string, page: Partial<WebFetchResult>, text: string])[] = [
  ['a text', {}, 'Fetched https://site.test/final (HTTP 200)\n\nwords'],
  [
    'a text without words',
    { body: { kind: 'text', content: ' \n' } },
    'Fetched https://site.test/final (HTTP 200)\n\n ',
  ],
  [
    'nothing',
    { body: { kind: 'text', content: '' } },
    'Fetched https://site.test/final (HTTP 200)\n\n(no text)',
  ],
  ['a failure', { statusCode: 404 }, 'Fetched https://site.test/final (HTTP 404)\n\nwords'],
  [
    'a page',
    { body: { kind: 'html', content: '<title>T</title><h1>A</h1><p><a href="b">c</a>' } },
    'Fetched https://site.test/final (HTTP 200)\nTitle: T\n\n# A\n\n[c](https://site.test/b)',
  ],
  [
    'a page that cannot be converted',
    { body: { kind: 'html', content: `${'<div>'.repeat(600)}x` } },
    'Fetched https://site.test/final (HTTP 200)\n\nx\n\n(bare text: the page could not be converted)',
  ],
  [
    'a page that is too long to fetch',
    { truncated: true },
    'Fetched https://site.test/final (HTTP 200)\n\nwords\n\n(the page is longer than what is fetched; its end is missing)',
  ],
  [
    'a redirect to another site',
    { statusCode: 301, body: { kind: 'text', content: '' }, redirect: 'https://other.test/' },
    'Fetched https://site.test/final (HTTP 301)\n\nIt redirects to another site: https://other.test/\nFetch that address if you want it.',
  ],
]
for (const [what, given, text] of cases) {
  test(`web_fetch tells ${what}`, async () => {
    const { fetch } = await setup({ page: given })
    assert.equal(textOf(await fetch()), text)
  })
}

test('web_fetch shows whole lines within its bound, and says where the rest is', async () => {
  const lines = Array.from({ length: 300 }, (_, index) => `line ${index + 1}`)
  const { agent, fetch } = await setup({
    config: { fetchMaxOutputBytes: 1000 },
    page: { body: { kind: 'text', content: lines.join('\r\n') } },
  })
  const result = await fetch()
  const [, sha256 = ''] = /artifact:([0-9a-f]{64})/.exec(textOf(result)) ?? []
  const shown = lines.filter((_, index) => index < 123)
  assert.equal(
    textOf(result),
    `Fetched https://site.test/final (HTTP 200)\n\n${shown.join('\n')}\n\n(lines 1-123 of 300, 2591 bytes in all; read artifact:${sha256} from offset 124 for the rest)`,
  )
  const kept = await agent.session.artifacts.get(sha256)
  assert.equal(Buffer.from(kept ?? []).toString(), lines.join('\n'))
  assert.deepEqual(!result.isError && result.meta, {
    url: 'https://site.test/final',
    statusCode: 200,
    totalBytes: 2591,
    truncated: false,
    artifact: sha256,
  })
})

for (const [bytes, isWhole] of [
  [999, true],
  [1000, true],
  [1001, false],
] as const) {
  test(`web_fetch shows ${bytes} of 1000 bytes ${isWhole ? 'whole' : 'in part'}`, async () => {
    const content = `${'x'.repeat(500)}\n${'y'.repeat(bytes - 501)}`
    const { fetch } = await setup({
      config: { fetchMaxOutputBytes: 1000 },
      page: { body: { kind: 'text', content } },
    })
    assert.equal(textOf(await fetch()).includes('artifact:'), !isWhole)
  })
}

test('web_fetch shows a line that is longer than the bound', async () => {
  const content = `${'中'.repeat(1700)}\nmore`
  const { fetch } = await setup({
    config: { fetchMaxOutputBytes: 1000 },
    page: { body: { kind: 'text', content } },
  })
  assert.match(textOf(await fetch()), /\n中{1700}\n\n\(lines 1-1 of 2, 5105 bytes in all;/)
})

test('web_fetch says that the rest is gone where there is no session to keep it', async () => {
  const content = 'word\n'.repeat(1000)
  const { ctx } = await setup({
    config: { fetchMaxOutputBytes: 1000 },
    page: { body: { kind: 'text', content } },
  })
  const { signal } = new AbortController()
  const call = { callId: CallId('c'), name: 'web_fetch', arguments: { url: 'https://a.test/' }, signal }
  assert.match(
    textOf(await ctx.tools.execute(call)),
    /\(lines 1-200 of 1000, 4999 bytes in all; the rest was not kept\)$/,
  )
})

test('web_fetch breaks long lines where words end, and never inside a character', async () => {
  const content = `${'word '.repeat(1000)}\n${'😀'.repeat(2000)}`
  const { fetch } = await setup({ page: { body: { kind: 'text', content } } })
  const lines = textOf(await fetch()).split('\n')
  assert.ok(lines.every(line => line.length <= 1800 && line.isWellFormed()))
  assert.equal(lines.join('').replaceAll(/\s/g, '').match(/😀/gu)?.length, 2000)
  assert.ok(lines.slice(2, 5).every(line => /^(word ?)+$/.test(line)))
})

test('web_fetch fails with what the provider says', async () => {
  const { fetch } = await setup({
    page: () => Promise.reject(new WebError('WEB_BLOCKED_URL', 'not there')),
  })
  const result = await fetch()
  assert.equal(textOf(result), 'Error: not there')
  assert.deepEqual(result.isError && result.error.info, { name: 'WebError', code: 'WEB_BLOCKED_URL' })
})

test('web_fetch fails with the reason of whoever ends the call, not with what the provider makes of it', async () => {
  const controller = new AbortController()
  const { call } = await setup({
    page: () => {
      controller.abort(new Error('time is up'))
      return Promise.reject(new WebError('WEB_FETCH_TIMEOUT', 'mine'))
    },
  })
  const result = await call('web_fetch', { url: 'https://a.test/' }, controller.signal)
  assert.equal(result.isError && result.error.info?.code, 'ABORTED')
})

test('web_fetch is drawn as a card of the web, and malformed facts draw nothing', async () => {
  const { ctx, fetch } = await setup()
  const tool = ctx.tools.get('web_fetch')
  const args = { url: 'https://a.test/' }
  const result = await fetch()
  assert.deepEqual(tool?.presentCall?.(args), { card: 'web', title: 'https://a.test/', data: args })
  const meta = { url: 'https://site.test/final', statusCode: 200, totalBytes: 5, truncated: false }
  assert.deepEqual(tool?.presentResult?.(args, { ...result, meta }), {
    card: 'web',
    title: 'https://a.test/',
    data: meta,
  })
  for (const bad of [null, 1, [], {}, { statusCode: '200' }])
    assert.equal(tool?.presentResult?.(args, { ...result, meta: bad }), undefined)
})

const sources = (...names: readonly string[]): WebSearchResult => ({
  sources: names.map(name => ({ url: `https://${name}.test/` })),
  truncated: false,
})

test('web_search tells answers, sources and what is missing', async () => {
  const { call } = await setup({
    search: async query => ({
      content: `About ${query}.`,
      sources: [
        {
          url: 'https://a.test/x',
          title: 'A\n title',
          snippet: 'what\nit says',
          publishedAt: '2026-01-02',
        },
        { url: `https://${query}.test/` },
      ],
      truncated: query === 'two',
    }),
  })
  assert.equal(
    textOf(await call('web_search', { queries: ['one', 'two'] })),
    `### one

About one.

### two

About two.

Sources:
- [A title](https://a.test/x) — what it says (2026-01-02)
- [one.test](https://one.test/)
- [two.test](https://two.test/)

(more sources were found)

Name the sources you use, with their addresses.`,
  )
})

test('web_search tells that nothing was found', async () => {
  const { call } = await setup({ search: async () => sources() })
  assert.equal(textOf(await call('web_search', { queries: ['x'] })), 'No sources found.')
})

test('web_search takes the best of each query in turn, each address once, up to the most', async () => {
  const results: Record<string, WebSearchResult> = {
    one: sources('a', 'b', 'c', 'd'),
    two: sources('e', 'a', 'f', 'g'),
  }
  const { call } = await setup({
    config: { searchMaxResults: 5 },
    search: async query => results[query] ?? sources(),
  })
  const result = await call('web_search', { queries: ['one', 'two'] })
  assert.deepEqual(!result.isError && result.meta, {
    sources: ['a', 'e', 'b', 'c', 'f'].map(name => ({ url: `https://${name}.test/` })),
    truncated: true,
  })
})

test('web_search asks the same thing once', async () => {
  const asked: string[] = []
  const { call } = await setup({
    search: async query => {
      asked.push(query)
      return sources()
    },
  })
  await call('web_search', { queries: [' a', 'b', 'a ', ''] })
  assert.deepEqual(asked, ['a', 'b'])
})

for (const queries of [[], ['', ' '], ['a', 'b', 'c', 'd', 'e']]) {
  test(`web_search refuses ${JSON.stringify(queries)}`, async () => {
    const { call } = await setup({ search: async () => sources() })
    const result = await call('web_search', { queries })
    assert.match(textOf(result), /queries: must be 1 to 4 different texts, not \d/)
    assert.equal(result.isError && result.error.info?.code, 'INVALID_ARGS')
  })
}

test('web_search ends its other searches with the first that fails, and waits for them', async () => {
  const ended: string[] = []
  const { call } = await setup({
    search: async (query, signal) => {
      if (query === 'bad') throw new WebError('WEB_PROVIDER_ERROR', 'no luck')
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      ended.push(query)
      throw signal.reason
    },
  })
  const result = await call('web_search', { queries: ['one', 'bad', 'two'] })
  assert.equal(textOf(result), 'Error: no luck')
  assert.deepEqual(ended, ['one', 'two'])
})

test('web_search says what to set up where no provider can be used', async () => {
  const { call } = await setup({ config: { deepseek: {} } })
  const result = await call('web_search', { queries: ['x'] })
  assert.equal(textOf(result), 'Error: no search provider can be used: set DEEPSEEK_API_KEY (deepseek)')
  assert.equal(result.isError && result.error.info?.code, 'WEB_PROVIDER_UNAVAILABLE')
})

test('web_search is drawn as a card of the web, and malformed facts draw nothing', async () => {
  const { ctx } = await setup()
  const tool = ctx.tools.get('web_search')
  const args = { queries: ['a', 'b'] }
  assert.deepEqual(tool?.presentCall?.(args), { card: 'web', title: 'a, b', data: args })
  const result = { content: [], isError: false }
  for (const meta of [null, {}, { sources: 1 }])
    assert.equal(tool?.presentResult?.(args, { ...result, meta }), undefined)
  assert.deepEqual(tool?.presentResult?.(args, { ...result, meta: { sources: [], truncated: false } }), {
    card: 'web',
    title: 'a, b',
    data: { ...args, sources: [] },
  })
})
