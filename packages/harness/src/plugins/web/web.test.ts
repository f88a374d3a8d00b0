import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createHarness } from '../../testing/index.ts'
import { web, WebError } from './index.ts'
import type { WebInput, WebSearchProvider } from './index.ts'

async function setup(config: WebInput = {}) {
  const { ctx } = await createHarness()
  const fiber = ctx.plugin(web, { deepseek: false, fetch: false, ...config })
  await fiber
  return ctx
}

const provider = (id: string, isAvailable = true, hint?: string): WebSearchProvider => ({
  id,
  ...(hint !== undefined && { hint }),
  available: () => isAvailable,
  search: async () => ({ content: id, sources: [], truncated: false }),
})

describe('the provider of a search', () => {
  const cases: readonly (readonly [
    providers: readonly WebSearchProvider[],
    configured: string | undefined,
    outcome: string,
    message?: string,
  ])[] = [
    [[], undefined, 'WEB_PROVIDER_UNAVAILABLE', 'no search provider can be used; see docs/guide/web.md'],
    [
      [],
      'a',
      'WEB_PROVIDER_CONFIGURED_MISSING',
      'searchProvider of web is "a", which nobody provides; there is no search provider',
    ],
    [[provider('a')], undefined, 'a'],
    [[provider('a')], 'a', 'a'],
    [
      [provider('b')],
      'a',
      'WEB_PROVIDER_CONFIGURED_MISSING',
      'searchProvider of web is "a", which nobody provides; known: b',
    ],
    [
      [provider('a'), provider('b')],
      undefined,
      'WEB_PROVIDER_AMBIGUOUS',
      'a, b could all search; set searchProvider in the config of web to one of them',
    ],
    [[provider('a'), provider('b')], 'b', 'b'],
    [[provider('a', false), provider('b')], undefined, 'b'],
    [
      [provider('a', false, 'set A_KEY'), provider('b')],
      'a',
      'WEB_PROVIDER_CONFIGURED_UNAVAILABLE',
      'searchProvider of web is "a", which cannot be used now: set A_KEY (a)',
    ],
    [
      [provider('b', false, 'set B_KEY'), provider('a', false, 'set A_KEY')],
      undefined,
      'WEB_PROVIDER_UNAVAILABLE',
      'no search provider can be used: set A_KEY (a), or set B_KEY (b)',
    ],
  ]
  for (const [providers, configured, outcome, message] of cases) {
    const names = providers
      .map(({ id, available }) => (available() ? id : `${id}, which is out,`))
      .join(' and ')
    test(`of ${names || 'none'}, with ${configured ?? 'none'} configured, is ${outcome}`, async () => {
      for (const order of [providers, providers.toReversed()]) {
        const ctx = await setup(configured === undefined ? {} : { searchProvider: configured })
        for (const one of order) ctx.web.registerSearchProvider(one)
        const result = ctx.web.search({ query: 'x' })
        if (message === undefined) assert.equal((await result).content, outcome)
        else await assert.rejects(result, { code: outcome, message })
      }
    })
  }
})

test('a provider that becomes available is the one from the next call on', async () => {
  const ctx = await setup()
  let isAvailable = false
  ctx.web.registerSearchProvider({ ...provider('a'), available: () => isAvailable })
  await assert.rejects(ctx.web.search({ query: 'x' }), { code: 'WEB_PROVIDER_UNAVAILABLE' })
  isAvailable = true
  assert.equal((await ctx.web.search({ query: 'x' })).content, 'a')
})

test('an id is taken until its provider goes', async () => {
  const ctx = await setup()
  const dispose = ctx.web.registerSearchProvider(provider('a'))
  assert.throws(() => ctx.web.registerSearchProvider(provider('a')), {
    code: 'WEB_DUPLICATE_PROVIDER',
    message: 'there is a search provider "a" already',
  })
  ctx.web.registerFetchProvider({
    id: 'a',
    available: () => true,
    fetch: () => Promise.reject(new Error('no')),
  })
  dispose()
  ctx.web.registerSearchProvider(provider('a'))
})

test('what a plugin registered goes with it', async () => {
  const ctx = await setup()
  const fiber = ctx.plugin({
    name: 'mine',
    inject: ['web'],
    apply: own => void own.web.registerSearchProvider(provider('a')),
  })
  await fiber
  assert.equal((await ctx.web.search({ query: 'x' })).content, 'a')
  await fiber.dispose()
  await assert.rejects(ctx.web.search({ query: 'x' }), { code: 'WEB_PROVIDER_UNAVAILABLE' })
})

test('the tools and the service go with the plugin', async () => {
  const { ctx } = await createHarness()
  const fiber = ctx.plugin(web, {})
  await fiber
  assert.ok(ctx.tools.get('web_fetch') && ctx.tools.get('web_search') && ctx.get('web'))
  await fiber.dispose()
  assert.deepEqual(
    [ctx.tools.get('web_fetch'), ctx.tools.get('web_search'), ctx.get('web')],
    [undefined, undefined, undefined],
  )
})

test('each tool can be switched off', async () => {
  const ctx = await setup({ search: false })
  assert.deepEqual([ctx.tools.get('web_fetch'), ctx.tools.get('web_search')], [undefined, undefined])
})

test('sources past the most that are wanted are left out, and that is said', async () => {
  const ctx = await setup()
  const sources = ['a', 'b', 'c'].map(name => ({ url: `https://${name}.test/` }))
  ctx.web.registerSearchProvider({ ...provider('a'), search: async () => ({ sources, truncated: false }) })
  for (const [maxResults, kept] of [
    [2, 2],
    [3, 3],
    [4, 3],
  ] as const) {
    const result = await ctx.web.search({ query: 'x', maxResults })
    assert.deepEqual([result.sources.length, result.truncated], [kept, maxResults < 3])
  }
})

test('whatever a provider throws is an error of the web', async () => {
  const ctx = await setup()
  const thrown = [new Error('broken'), 'broken', new WebError('MY_OWN', 'broken')]
  ctx.web.registerSearchProvider({
    ...provider('a'),
    search: async () => Promise.reject(thrown.shift() as Error),
  })
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_ERROR',
    message: 'provider a: broken',
  })
  await assert.rejects(ctx.web.search({ query: 'x' }), {
    code: 'WEB_PROVIDER_ERROR',
    message: 'provider a: broken',
  })
  await assert.rejects(ctx.web.search({ query: 'x' }), { code: 'MY_OWN', message: 'broken' })
})

test('a call that is given up says so, and why', async () => {
  const ctx = await setup()
  const controller = new AbortController()
  const reason = new Error('enough')
  ctx.web.registerSearchProvider({
    ...provider('a'),
    search: async () => {
      controller.abort(reason)
      throw new Error('closed')
    },
  })
  await assert.rejects(ctx.web.search({ query: 'x' }, controller.signal), {
    code: 'WEB_ABORTED',
    cause: reason,
  })
  await assert.rejects(ctx.web.search({ query: 'x' }, controller.signal), {
    code: 'WEB_ABORTED',
    cause: reason,
  })
})

test('a config that cannot be is refused', async () => {
  const bad: readonly WebInput[] = [
    { fetchTimeoutMs: 0 },
    { fetchTimeoutMs: 2_147_483_648 },
    { maxRedirects: -1 },
    { allowPorts: [0] },
    { json: { a: { url: 'file:///x' } } },
    { json: { a: { url: 'https://x', results: 'a' } } },
    { deepseek: { maxTokens: 0 } },
  ]
  for (const config of bad) await assert.rejects(setup(config), { code: 'INVALID_CONFIG' })
})
