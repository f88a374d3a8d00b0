import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import type { LlmFailure } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import type { MockReply } from '../../testing/index.ts'
import { retryAfterMs } from './failure.ts'
import { checkKey, OpenAIChatAdapter } from './index.ts'
import type { OpenAIChatConfig } from './index.ts'

const messages = [createUserMessage({ content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } })]

async function failureOf(
  t: TestContext,
  answer: MockReply,
  config: OpenAIChatConfig = {},
): Promise<LlmFailure> {
  const provider = await startMockProvider({ script: [answer], key: null })
  const env = { ...provider.env, DEEPSEEK_API_KEY: 'sk-canary-1234567890' }
  const adapter = new OpenAIChatAdapter({ env, ...config })
  t.after(async () => {
    adapter.close()
    await provider.close()
  })
  return await failureFrom(adapter)
}

async function failureFrom(adapter: OpenAIChatAdapter, provider = 'deepseek'): Promise<LlmFailure> {
  const { finish } = await collectAnswer(adapter.stream({ provider, model: 'm', messages }))
  assert.ok(finish.kind === 'error', finish.kind)
  return finish.failure
}

const openAIError = (message: string, code: string | null = null): object => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})

describe('the body of an error is shown as it is', () => {
  const cases: readonly (readonly [title: string, answer: MockReply, message: string])[] = [
    [
      'the message of JSON',
      reply.status(400, { body: openAIError('bad thing') }),
      'deepseek answered 400: bad thing (invalid_request_error)',
    ],
    [
      'plain text',
      reply.status(400, { body: 'unpaired surrogate at 17' }),
      'deepseek answered 400: unpaired surrogate at 17',
    ],
    ['HTML', reply.status(503, { body: '<html>busy</html>' }), 'deepseek answered 503: <html>busy</html>'],
    ['an empty body as empty', reply.status(400), 'deepseek answered 400: (empty body)'],
    [
      'JSON without a message',
      reply.status(400, { body: { oops: [1] } }),
      'deepseek answered 400: {"oops":[1]}',
    ],
    [
      'detail',
      reply.status(422, { body: { detail: 'field required' } }),
      'deepseek answered 422: field required',
    ],
    [
      'what a gateway passes on',
      reply.status(400, {
        body: { error: { message: 'Provider returned error', metadata: { raw: 'inner' } } },
      }),
      'deepseek answered 400: Provider returned error: inner',
    ],
    [
      'bytes',
      reply.status(400, { headers: { 'content-type': 'application/octet-stream' }, body: 'raw' }),
      'deepseek answered 400: raw',
    ],
  ]
  for (const [title, answer, message] of cases) {
    test(title, async t => assert.equal((await failureOf(t, answer)).message, message))
  }

  test('of a very long one the first 500 characters, whole ones', async t => {
    const { message } = await failureOf(t, reply.status(400, { body: '🐳'.repeat(150_000) }))
    assert.ok(message.isWellFormed())
    assert.equal(message.startsWith(`deepseek answered 400: ${'🐳'.repeat(250)}…`), true)
    assert.match(message, /… \(\d+ more characters\)$/)
  })

  test('also when the connection breaks in the middle of it', async t => {
    const answer = reply.status(500, { body: 'half a story' }).cut({ bytes: 4, how: 'rst' })
    assert.equal((await failureOf(t, answer)).code, 'SERVER')
  })
})

describe('a status has the code of what it means', () => {
  const cases: readonly (readonly [status: number, body: string | object, code: string])[] = [
    [401, openAIError('Authentication Fails'), 'AUTH'],
    [403, 'Forbidden', 'AUTH'],
    [402, openAIError('Insufficient Balance'), 'QUOTA'],
    [429, openAIError('slow down'), 'RATE_LIMIT'],
    [429, openAIError('You exceeded your current quota', 'insufficient_quota'), 'QUOTA'],
    [
      429,
      { error: { message: 'Input token exceed the limit', code: 'quota_limit_reached' } },
      'CONTEXT_WINDOW_EXCEEDED',
    ],
    [400, openAIError("This model's maximum context length is 1048576 tokens"), 'CONTEXT_WINDOW_EXCEEDED'],
    [400, openAIError('too long', 'context_length_exceeded'), 'CONTEXT_WINDOW_EXCEEDED'],
    [400, openAIError('prompt is too long: 210000 tokens > 200000 maximum'), 'CONTEXT_WINDOW_EXCEEDED'],
    [400, openAIError('The input token count (9) exceeds the maximum'), 'CONTEXT_WINDOW_EXCEEDED'],
    [400, openAIError('Range of input length should be [1, 98304]'), 'CONTEXT_WINDOW_EXCEEDED'],
    [400, openAIError('Prompt exceeds max length'), 'CONTEXT_WINDOW_EXCEEDED'],
    [413, 'Request Entity Too Large', 'CONTEXT_WINDOW_EXCEEDED'],
    [400, 'no', 'INVALID_REQUEST'],
    [422, 'no', 'INVALID_REQUEST'],
    [404, openAIError('The model `x` does not exist', 'model_not_found'), 'UNKNOWN_MODEL'],
    [500, 'oops', 'SERVER'],
    [503, '<html>', 'SERVER'],
    [529, 'overloaded', 'SERVER'],
  ]
  for (const [status, body, code] of cases) {
    test(`${status} ${JSON.stringify(body)} is ${code}`, async t => {
      const failure = await failureOf(t, reply.status(status, { body }))
      assert.equal(failure.code, code)
      assert.equal(failure.status, status)
    })
  }
})

describe('an error says what to do', () => {
  test('an empty balance: where to top up', async t => {
    const { message } = await failureOf(t, reply.status(402, { body: openAIError('Insufficient Balance') }))
    assert.equal(
      message,
      'deepseek answered 402: Insufficient Balance (invalid_request_error) — the balance is used up; top up at https://platform.deepseek.com/top_up',
    )
  })

  test('a refused key: which one, and where keys are', async t => {
    const { message } = await failureOf(t, reply.status(401, { body: 'no' }))
    assert.equal(
      message,
      'deepseek answered 401: no — check the key from DEEPSEEK_API_KEY at https://platform.deepseek.com/api_keys',
    )
  })

  test('a path that is not there: the base URL', async t => {
    const { message } = await failureOf(t, reply.status(404, { body: 'nothing here' }))
    assert.match(
      message,
      /^deepseek answered 404: nothing here — check the base URL, 127\.0\.0\.1:\d+ knows no such path$/,
    )
  })

  test('a redirect: it is not followed, so that the key stays with its host', async t => {
    const { message, code } = await failureOf(
      t,
      reply.status(307, { headers: { location: 'http://127.0.0.1:9/' } }),
    )
    assert.equal(code, 'UNKNOWN')
    assert.equal(
      message,
      'deepseek answered 307: (empty body) — redirects are not followed; correct the base URL',
    )
  })
})

describe('Retry-After', () => {
  const now = Date.UTC(2026, 10, 30, 12)
  const cases: readonly (readonly [header: string | undefined, ms: number | undefined])[] = [
    ['2', 2000],
    ['11180', 11_180_000],
    ['0.5', 500],
    [new Date(now + 3000).toUTCString(), 3000],
    [new Date(now - 3000).toUTCString(), undefined],
    ['-5', undefined],
    ['0', undefined],
    ['²', undefined],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
    ['9'.repeat(400), undefined],
  ]
  for (const [header, ms] of cases) {
    test(`${JSON.stringify(header?.slice(0, 40))} is ${ms} ms`, () => {
      assert.equal(
        retryAfterMs(name => (name === 'retry-after' ? header : undefined), now),
        ms,
      )
    })
  }

  test('and the id of the request reach the failure', async t => {
    const headers = { 'retry-after': '7', 'x-request-id': 'req-1' }
    const failure = await failureOf(t, reply.status(429, { headers, body: 'slow down' }))
    assert.equal(failure.providerRetryAfterMs, 7000)
    assert.equal(failure.requestId, 'req-1')
  })
})

const canary = 'sk-canary-1234567890'

for (const body of [
  openAIError(`Incorrect API key provided: ${canary}.`),
  `Authorization: Bearer ${canary}`,
  { oops: canary },
  `prefix sk-canary-12****90 and http://user:secretword@proxy:1/`,
]) {
  test(`a key is never repeated: ${JSON.stringify(body)}`, async t => {
    const { message } = await failureOf(t, reply.status(401, { body }))
    assert.doesNotMatch(message, /canary|secretword/)
    assert.match(message, /\[redacted\]/)
  })
}

test('a key in a header of the config is not repeated either', async t => {
  const providers = { deepseek: { headers: { 'x-gate': 'gate-secret-77' } } }
  const { message } = await failureOf(t, reply.status(403, { body: 'bad gate-secret-77' }), { providers })
  assert.equal(message.includes('gate-secret-77'), false)
})

test('a key that is missing is said with the variable to set, before anything is sent', async t => {
  const provider = await startMockProvider()
  t.after(() => provider.close())
  const adapter = new OpenAIChatAdapter({ env: { DEEPSEEK_BASE_URL: provider.url } })
  assert.deepEqual(await failureFrom(adapter), {
    code: 'MISSING_CREDENTIAL',
    message:
      'no key for deepseek: set DEEPSEEK_API_KEY; keys are made at https://platform.deepseek.com/api_keys',
  })
  assert.equal(provider.requests.length, 0)
})

test('a key with white space around it is trimmed', async t => {
  const provider = await startMockProvider({ script: [reply.text('ok')], key: 'sk-x' })
  t.after(() => provider.close())
  const adapter = new OpenAIChatAdapter({ env: { ...provider.env, DEEPSEEK_API_KEY: ' sk-x\r\n' } })
  const { text } = await collectAnswer(adapter.stream({ provider: 'deepseek', model: 'm', messages }))
  assert.equal(text, 'ok')
})

for (const key of ['sk-abc🐳', 'ｓｋ-abc', 'sk-中文', 'sk-a b', 'sk-a\nb', 'sk-a\u0000']) {
  test(`a key like ${JSON.stringify(key)} is refused without repeating it`, async () => {
    const adapter = new OpenAIChatAdapter({ env: { DEEPSEEK_API_KEY: key } })
    const { code, message } = await failureFrom(adapter)
    assert.equal(code, 'INVALID_CREDENTIAL')
    assert.match(
      message,
      /^the key of deepseek in DEEPSEEK_API_KEY cannot be used: character \d+ of \d+ is not printable ASCII, which no key holds; copy it again$/,
    )
  })
}

test('a key is checked the same way where a person types it', () => {
  assert.deepEqual(checkKey(' sk-x\n'), { key: 'sk-x' })
  assert.deepEqual(checkKey(' '), { problem: 'it is empty' })
})

test('a key is looked up anew for each request', async t => {
  const provider = await startMockProvider({ script: [reply.text('ok')], key: 'sk-new' })
  t.after(() => provider.close())
  let key = 'sk-old'
  const adapter = new OpenAIChatAdapter({ env: provider.env, findKey: () => Promise.resolve(key) })
  assert.equal((await failureFrom(adapter)).code, 'AUTH')
  key = 'sk-new'
  const { text } = await collectAnswer(adapter.stream({ provider: 'deepseek', model: 'm', messages }))
  assert.equal(text, 'ok')
})

test('a key is not needed for a host of one’s own', async t => {
  const provider = await startMockProvider({ script: [reply.text('ok')], key: null })
  t.after(() => provider.close())
  const adapter = new OpenAIChatAdapter({ providers: { ollama: { baseURL: provider.url } } })
  const { text } = await collectAnswer(adapter.stream({ provider: 'ollama', model: 'm', messages }))
  assert.equal(text, 'ok')
  assert.equal(provider.requests[0]?.headers['authorization'], undefined)
})

describe('a network that does not carry', () => {
  const unreachable = (baseURL: string): Promise<LlmFailure> =>
    failureFrom(new OpenAIChatAdapter({ providers: { local: { baseURL, keyOptional: true } } }), 'local')

  test('a host where nothing listens is named', async () => {
    const failure = await unreachable('http://127.0.0.1:9')
    assert.deepEqual(failure, {
      code: 'TRANSPORT',
      message: '127.0.0.1:9 cannot be reached: nothing listens there (ECONNREFUSED)',
    })
  })

  test('a name nobody knows is named', async () => {
    const failure = await unreachable('http://no-such-host.invalid')
    assert.equal(failure.code, 'TRANSPORT')
    assert.match(
      failure.message,
      /^no-such-host\.invalid cannot be reached: its name .*is this machine online \(E[A-Z_]+\)$/,
    )
  })

  for (const how of ['fin', 'rst'] as const) {
    test(`a connection that ends with ${how} before an answer is a failure of the transport`, async t => {
      assert.equal((await failureOf(t, reply.nothing(how))).code, 'TRANSPORT')
    })
  }

  test('bytes that are no HTTP are a failure of the transport', async t => {
    assert.equal((await failureOf(t, reply.raw('SSH-2.0-OpenSSH\r\n'))).code, 'TRANSPORT')
  })

  test('a head that breaks off is a failure of the transport', async t => {
    assert.equal((await failureOf(t, reply.raw('HTTP/1.1 200 OK\r\nconten'))).code, 'TRANSPORT')
  })

  test('a kept connection that the host has closed meanwhile is not a failure', async t => {
    const provider = await startMockProvider({ script: [reply.text('one').close(), reply.text('two')] })
    t.after(() => provider.close())
    const adapter = new OpenAIChatAdapter({ env: provider.env })
    const ask = () => collectAnswer(adapter.stream({ provider: 'deepseek', model: 'm', messages }))
    assert.equal((await ask()).text, 'one')
    assert.equal((await ask()).text, 'two')
    adapter.close()
  })
})
