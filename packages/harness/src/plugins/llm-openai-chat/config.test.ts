import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import { modelFacts, resolveProviders } from './config.ts'
import { OpenAIChatAdapter, providerCatalog } from './index.ts'
import type { OpenAIChatConfig } from './index.ts'
import { quirksOf } from './quirks.ts'
import { toTokenUsage } from './usage.ts'

function resolved(providers: unknown) {
  const problems: string[] = []
  const entries = resolveProviders(providers as OpenAIChatConfig['providers'], (_provider, text) =>
    problems.push(text),
  )
  return { entries, problems }
}

test('every known host is a route of its own accord, and false takes one away', () => {
  const { entries, problems } = resolved({ openai: false })
  assert.deepEqual(
    [...entries.keys()],
    Object.keys(providerCatalog).filter(id => id !== 'openai'),
  )
  assert.deepEqual(problems, [])
})

test('facts written by hand stand over those of the catalog, field by field', () => {
  const { entries } = resolved({
    deepseek: { models: { 'deepseek-flash': { contextWindow: 64_000 } }, quirks: { emptyContent: '' } },
  })
  const entry = entries.get('deepseek')
  assert.ok(entry)
  const facts = modelFacts(entry, 'deepseek-flash')
  assert.equal(facts.contextWindow, 64_000)
  assert.equal(facts.maxOutput, 384_000)
  assert.equal(facts.defaultEffort, 'high')
  assert.equal(entry.quirks.emptyContent, '')
  assert.equal(entry.quirks.reasoningReplay, 'with-tool-calls')
})

test('a host under another name has the facts of its address', () => {
  const { entries } = resolved({ mine: { baseURL: 'https://api.deepseek.com/v1', apiKeyEnv: 'MINE' } })
  const mine = entries.get('mine')
  assert.equal(mine?.quirks.thinkingStyle, 'deepseek')
  assert.deepEqual(mine.facts.apiKeyEnv, ['MINE'])
  assert.equal(mine.facts.name, 'mine')
})

test('an old name of a model has the facts of the model', () => {
  const entry = resolved({}).entries.get('deepseek')
  assert.ok(entry)
  assert.equal(modelFacts(entry, 'deepseek-v4-flash').contextWindow, 1_000_000)
  assert.equal(modelFacts(entry, 'deepseek-v9').contextWindow, undefined)
  assert.equal(modelFacts(entry, 'constructor').contextWindow, undefined)
})

describe('a bad field counts as absent and is named', () => {
  const cases: readonly (readonly [provider: unknown, problem: string])[] = [
    [{ baseUrl: 'http://x' }, 'provider "a" has no setting "baseUrl"; did you mean "baseURL"?'],
    [{ baseURL: 'ftp://x' }, 'baseURL of provider "a" is not usable: "ftp://x"'],
    [{ apiKey: 7 }, 'apiKey of provider "a" is not usable'],
    [{ idleTimeoutMs: -1 }, 'idleTimeoutMs of provider "a" is not usable: -1'],
    [{ headers: { a: 'b\r\nc' } }, 'headers of provider "a" is not usable: {"a":"b\\r\\nc"}'],
    [{ quirks: { systemRol: 'x' } }, 'provider "a" has no setting "systemRol"; did you mean "systemRole"?'],
    [{ quirks: { systemRole: 'boss' } }, 'quirk systemRole of provider "a" is not usable: "boss"'],
    [{ body: { messages: [] } }, 'body of provider "a" cannot set "messages"'],
    [{ like: 'nobody' }, 'there is no known host "nobody"'],
    ['text', 'the settings of provider "a" are no map'],
  ]
  for (const [provider, problem] of cases) {
    test(problem, () => {
      const { entries, problems } = resolved({ a: provider })
      assert.deepEqual(problems, [problem])
      assert.equal(entries.has('deepseek'), true)
    })
  }
})

test('what is wrong with the config is told once, and the other providers work', async t => {
  const provider = await startMockProvider({ script: [reply.text('fine')] })
  t.after(() => provider.close())
  const notices: string[] = []
  const adapter = new OpenAIChatAdapter(
    { env: provider.env, providers: { broken: { baseURL: 'not a url' }, deepseek: {} } },
    notice => notices.push(`${notice.code}: ${notice.text}`),
  )
  assert.deepEqual(notices, ['BAD_CONFIG: baseURL of provider "broken" is not usable: "not a url"'])
  const ask = (id: string) => collectAnswer(adapter.stream({ provider: id, model: 'm', messages: [] }))
  assert.equal((await ask('deepseek')).finish.kind, 'error')
  const { finish } = await ask('broken')
  assert.equal(
    finish.kind === 'error' && finish.failure.message,
    'the base URL of provider "broken" is missing',
  )
})

describe('the address of a request', () => {
  const cases: readonly (readonly [base: (url: string) => string, path: string])[] = [
    [url => url, '/chat/completions'],
    [url => `${url}/`, '/chat/completions'],
    [url => `${url}/v1/`, '/v1/chat/completions'],
    [url => `${url}/v1/chat/completions`, '/v1/chat/completions'],
    [url => `${url}/v1?api-version=7`, '/v1/chat/completions?api-version=7'],
  ]
  for (const [base, path] of cases) {
    test(`${base('BASE')} leads to ${path}`, async t => {
      const provider = await startMockProvider()
      t.after(() => provider.close())
      const env = { ...provider.env, DEEPSEEK_BASE_URL: base(provider.url) }
      const adapter = new OpenAIChatAdapter({ env })
      await collectAnswer(adapter.stream({ provider: 'deepseek', model: 'm', messages: [] }))
      assert.equal((provider.requests[0] ?? provider.lookups[0])?.path, path)
    })
  }

  test('is said where there is none', async () => {
    const adapter = new OpenAIChatAdapter({ providers: { mine: { keyOptional: true } } })
    const { finish } = await collectAnswer(adapter.stream({ provider: 'mine', model: 'm', messages: [] }))
    assert.equal(
      finish.kind === 'error' && finish.failure.message,
      'the base URL of provider "mine" is missing',
    )
  })
})

test('models are described as far as they are known', async () => {
  const adapter = new OpenAIChatAdapter({
    providers: { local: { baseURL: 'http://127.0.0.1:1', models: ['a', 'b'] } },
  })
  assert.deepEqual(await adapter.resolveModel('deepseek', 'deepseek-v4-pro'), {
    provider: 'deepseek',
    id: 'deepseek-v4-pro',
    name: 'DeepSeek V4 Pro',
    inputModalities: ['text'],
    context: { contextWindow: 1_000_000 },
    reasoning: {
      efforts: [
        { id: 'none', name: 'Off' },
        { id: 'low', name: 'Low' },
        { id: 'high', name: 'High' },
        { id: 'max', name: 'Maximum' },
        { id: 'minimal', name: 'Minimal', description: 'taken as low' },
        { id: 'medium', name: 'Medium', description: 'taken as high' },
        { id: 'xhigh', name: 'Extra high', description: 'taken as high' },
        { id: 'ultra', name: 'Ultra', description: 'taken as max' },
      ],
      defaultEffort: 'high',
    },
  })
  assert.deepEqual(
    adapter.listModels('local').map(model => model.id),
    ['a', 'b'],
  )
  assert.deepEqual(await adapter.resolveModel('local', 'new'), { provider: 'local', id: 'new', name: 'new' })
  assert.deepEqual(adapter.providerInfo('deepseek'), { id: 'deepseek', name: 'DeepSeek' })
})

test('the quirks of a host win over those of a model, and those of the model over the plain ones', () => {
  assert.equal(quirksOf('x/deepseek-r1').reasoningReplay, 'with-tool-calls')
  assert.equal(quirksOf('x/deepseek-r1', { reasoningReplay: 'never' }).reasoningReplay, 'never')
  assert.equal(quirksOf('plain').reasoningReplay, 'never')
})

describe('a host is asked', () => {
  const setup = async (t: { after(fn: () => Promise<void>): void }, models?: readonly object[]) => {
    const mock = await startMockProvider({ key: 'sk-right', ...(models && { models }) })
    t.after(() => mock.close())
    const host = (key: string) =>
      new OpenAIChatAdapter({ env: { ...mock.env, DEEPSEEK_API_KEY: key } }).host('deepseek')
    return { mock, host }
  }

  test('for its models, which come with what is known of them', async t => {
    const rows = [
      { id: 'deepseek-flash' },
      { id: 'new', context_length: 9000, name: 'New' },
      {},
      { id: 7 },
      { id: 'new' },
    ]
    const { host } = await setup(t, rows)
    const models = await host('sk-right').listModels()
    assert.deepEqual(
      models.map(({ id, name, context }) => [id, name, context?.contextWindow]),
      [
        ['deepseek-flash', 'DeepSeek Flash', 1_000_000],
        ['new', 'new', undefined],
      ],
    )
  })

  test('with a wrong key is AUTH', async t => {
    const { host } = await setup(t)
    await assert.rejects(host('sk-wrong').listModels(), { code: 'AUTH' })
    await assert.rejects(host(' ').listModels(), { code: 'MISSING_CREDENTIAL' })
    await assert.rejects(host('sk-ключ').listModels(), { code: 'INVALID_CREDENTIAL' })
  })

  test('for the balance', async t => {
    const { host } = await setup(t)
    assert.deepEqual(await host('sk-right').balance(), {
      isAvailable: true,
      amounts: [{ currency: 'CNY', total: '110.00' }],
    })
  })

  test('and stops when it is told to', async t => {
    const { host } = await setup(t)
    await assert.rejects(
      host('sk-right').listModels(AbortSignal.abort('enough')),
      error => error === 'enough',
    )
  })

  test('and a web page in place of an answer is INVALID_RESPONSE', async () => {
    const adapter = new OpenAIChatAdapter({
      env: { DEEPSEEK_API_KEY: 'sk-x' },
      transport: () => {
        const parts = [Buffer.from('<html>'), undefined]
        return Promise.resolve({
          status: 200,
          header: () => undefined,
          read: () => Promise.resolve(parts.shift()),
          discard: () => {},
          release: () => {},
        })
      },
    })
    await assert.rejects(adapter.host('deepseek').listModels(), { code: 'INVALID_RESPONSE' })
  })
})

describe('usage is counted once', () => {
  const cases: readonly (readonly [usage: unknown, counts: unknown])[] = [
    [
      {
        prompt_tokens: 100,
        completion_tokens: 20,
        prompt_cache_hit_tokens: 64,
        prompt_cache_miss_tokens: 36,
      },
      { inputTokens: 36, outputTokens: 20, cacheReadTokens: 64 },
    ],
    [
      {
        prompt_tokens: 100,
        completion_tokens: 20,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 5 },
      },
      { inputTokens: 30, outputTokens: 20, cacheReadTokens: 60, cacheWriteTokens: 10, reasoningTokens: 5 },
    ],
    [
      { prompt_tokens: 10, completion_tokens: 2, reasoning_tokens: 30, total_tokens: 42 },
      { inputTokens: 10, outputTokens: 32, reasoningTokens: 30 },
    ],
    [
      { prompt_tokens: 10, completion_tokens: 2, cached_tokens: 4 },
      { inputTokens: 6, outputTokens: 2, cacheReadTokens: 4 },
    ],
    [{ prompt_tokens: 3 }, { inputTokens: 3, outputTokens: 0 }],
    [
      { prompt_tokens: 3, completion_tokens: 1, prompt_cache_hit_tokens: 9 },
      { inputTokens: 0, outputTokens: 1, cacheReadTokens: 9 },
    ],
    [{ prompt_tokens: '3', completion_tokens: -1 }, undefined],
    [{}, undefined],
    [null, undefined],
    ['many', undefined],
  ]
  for (const [usage, counts] of cases) {
    test(JSON.stringify(usage), () => assert.deepEqual(toTokenUsage(usage), counts))
  }
})
