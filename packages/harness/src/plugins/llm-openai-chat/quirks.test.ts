import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { Message } from '@dsh/protocol'
import { createAssistantMessage, createToolResultMessage, createUserMessage } from '../../core/llm/index.ts'
import type { GenerateOptions } from '../../core/llm/index.ts'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import type { CollectedAnswer, MockProvider, MockProviderOptions } from '../../testing/index.ts'
import { OpenAIChatAdapter } from './index.ts'
import type { ProviderConfig, WireNotice } from './index.ts'

const hello = createUserMessage({ content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } })

/** A step with a call, made by `provider`, with or without thinking. */
function step(thought: string | undefined, provider = 'deepseek'): Message[] {
  const id = CallId(`c${provider}`)
  const call = { type: 'tool-call', id, name: 'bash', arguments: '{}' } as const
  const thinking = thought === undefined ? [] : [{ type: 'reasoning', text: thought } as const]
  return [
    createAssistantMessage({ content: [...thinking, call], source: { kind: 'model', provider, model: 'm' } }),
    createToolResultMessage({ callId: id, content: [{ type: 'text', text: 'ok' }] }),
  ]
}

interface Setup {
  readonly mock: MockProvider
  readonly notices: WireNotice[]
  ask(options?: Partial<GenerateOptions>): Promise<CollectedAnswer>
}

/** One adapter whose provider `host` is the mock. */
async function setup(
  t: TestContext,
  options: MockProviderOptions,
  config: ProviderConfig = {},
): Promise<Setup> {
  const mock = await startMockProvider({ fallback: reply.text('fine'), ...options })
  const notices: WireNotice[] = []
  const adapter = new OpenAIChatAdapter(
    { providers: { host: { baseURL: mock.url, apiKey: 'sk-mock', ...config } } },
    notice => notices.push(notice),
  )
  t.after(async () => {
    adapter.close()
    await mock.close()
  })
  return {
    mock,
    notices,
    ask: given =>
      collectAnswer(adapter.stream({ provider: 'host', model: 'some-model', messages: [hello], ...given })),
  }
}

const learned = (notices: readonly WireNotice[]): string[] =>
  notices.filter(({ code }) => code === 'QUIRK_LEARNED').map(({ text }) => text)

describe('DeepSeek gets thinking back with every tool call', () => {
  const histories: Readonly<Record<string, Message[]>> = {
    'its own': [hello, ...step('let me see')],
    'its own where it was empty': [hello, ...step('')],
    'none where there was none': [hello, ...step(undefined)],
    'that of another model': [hello, ...step('hm', 'other')],
    'of several steps and turns': [hello, ...step('a'), hello, ...step(undefined, 'other'), hello],
  }
  for (const [title, messages] of Object.entries(histories)) {
    test(title, async t => {
      const { mock, ask } = await setup(t, {}, { like: 'deepseek' })
      assert.equal((await ask({ messages })).text, 'fine')
      const sent = mock.requests[0]?.body.messages?.filter(message => message.tool_calls) ?? []
      for (const message of sent) assert.equal(typeof message.reasoning_content, 'string')
      assert.equal(mock.requests.length, 1)
    })
  }

  test('and answers without calls leave it out', async t => {
    const { mock, ask } = await setup(t, {}, { like: 'deepseek' })
    const source = { kind: 'model', provider: 'host', model: 'm' } as const
    const said = createAssistantMessage({
      content: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'yes' },
      ],
      source,
    })
    await ask({ messages: [hello, said, hello] })
    assert.deepEqual(mock.requests[0]?.body.messages?.[1], { role: 'assistant', content: 'yes' })
  })

  test('also on a host nobody knows, by the name of the model', async t => {
    const { mock, ask } = await setup(t, {})
    await ask({ model: 'deepseek-ai/DeepSeek-V4', messages: [hello, ...step('hm')] })
    assert.equal(mock.requests[0]?.body.messages?.[1]?.reasoning_content, 'hm')
    assert.equal(mock.requests.length, 1)
  })
})

describe('a habit that the host refuses is dropped: the host is asked once more, and never again', () => {
  interface Case {
    readonly rules: MockProviderOptions['rules']
    readonly config?: ProviderConfig
    readonly options?: Partial<GenerateOptions>
    readonly told: string
    readonly isDropped: (body: Readonly<Record<string, unknown>>) => boolean
  }
  const messages = [hello, ...step('hm')]
  const cases: Readonly<Record<string, Case>> = {
    'thinking in the history': {
      rules: { reasoning: 'forbidden' },
      config: { quirks: { reasoningReplay: 'with-tool-calls' } },
      options: { messages },
      told: 'host refused it: thinking is not sent back from now on',
      isDropped: body => !JSON.stringify(body).includes('reasoning_content'),
    },
    'no thinking in the history': {
      rules: { reasoning: 'required' },
      options: { messages },
      told: 'host refused it: thinking is sent back with tool calls from now on',
      isDropped: body => JSON.stringify(body).includes('"reasoning_content":"hm"'),
    },
    'the role developer': {
      rules: {},
      config: { quirks: { systemRole: 'developer' } },
      options: { system: 'Be brief.' },
      told: 'host refused it: the system prompt goes out as "system" from now on',
      isDropped: body => JSON.stringify(body).includes('"role":"system"'),
    },
    stream_options: {
      rules: { streamOptions: false },
      told: 'host refused it: usage is not asked for from now on',
      isDropped: body => !('stream_options' in body),
    },
    max_completion_tokens: {
      rules: { maxTokensField: 'max_tokens' },
      config: { quirks: { maxTokensField: 'max_completion_tokens' } },
      options: { maxTokens: 100 },
      told: 'host refused it: the output limit is sent as max_tokens from now on',
      isDropped: body => body['max_tokens'] === 100 && !('max_completion_tokens' in body),
    },
    max_tokens: {
      rules: { maxTokensField: 'max_completion_tokens' },
      options: { maxTokens: 100 },
      told: 'host refused it: the output limit is sent as max_completion_tokens from now on',
      isDropped: body => body['max_completion_tokens'] === 100 && !('max_tokens' in body),
    },
  }
  for (const [title, { rules, config, options, told, isDropped }] of Object.entries(cases)) {
    test(title, async t => {
      const { mock, notices, ask } = await setup(
        t,
        rules === undefined ? {} : { rules: { reasoning: 'free', ...(rules as object) } },
        config,
      )
      assert.equal((await ask(options)).text, 'fine')
      assert.equal((await ask(options)).text, 'fine')
      assert.deepEqual(
        mock.requests.map(request => request.problems.length > 0),
        [true, false, false],
      )
      assert.equal(isDropped(mock.requests[2]?.body ?? {}), true)
      assert.deepEqual(learned(notices), [told])
    })
  }

  test('several, one after another', async t => {
    const rules = { streamOptions: false, reasoning: 'forbidden' } as const
    const config: ProviderConfig = { quirks: { systemRole: 'developer', reasoningReplay: 'with-tool-calls' } }
    const { mock, ask } = await setup(t, { rules }, config)
    assert.equal((await ask({ system: 's', messages })).text, 'fine')
    assert.equal(mock.requests.length, 4)
    assert.equal((await ask({ system: 's', messages })).text, 'fine')
    assert.equal(mock.requests.length, 5)
  })
})

const refusal = (message: string) =>
  reply.status(400, { body: { error: { message, type: 'invalid_request_error' } } })

describe('a refusal in the words of a host is heeded', () => {
  const tools = [
    { name: 'bash', description: '', parameters: { type: 'object', properties: { a: { type: 'string' } } } },
  ]
  const cases: readonly (readonly [
    message: string,
    options: Partial<GenerateOptions>,
    check: (body: Readonly<Record<string, unknown>>) => unknown,
    expected: unknown,
  ])[] = [
    [
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
      { temperature: 0.2 },
      body => 'temperature' in body,
      false,
    ],
    [
      'Unrecognized request argument supplied: reasoning_effort',
      { reasoningEffort: 'high' },
      body => 'reasoning_effort' in body,
      false,
    ],
    [
      "Invalid schema for function 'bash': None is not of type 'object'",
      { tools },
      body => (body['tools'] as { function: { parameters: unknown } }[])[0]?.function.parameters,
      { type: 'object', properties: {} },
    ],
    [
      "This model's maximum context length is 1048576 tokens. However, you requested 1057216 tokens (664000 in the messages, 393216 in the completion).",
      { maxTokens: 393_216 },
      body => body['max_tokens'],
      1_048_576 - 664_000 - 1024,
    ],
  ]
  for (const [message, options, check, expected] of cases) {
    test(message, async t => {
      const { mock, ask } = await setup(t, { script: [refusal(message)] })
      assert.equal((await ask(options)).text, 'fine')
      assert.equal(mock.requests.length, 2)
      assert.deepEqual(check(mock.requests[1]?.body ?? {}), expected)
    })
  }
})

test('a refusal that says the input alone is too long is an overflow, not cured by a smaller answer', async t => {
  const message =
    'maximum context length is 1000 tokens. However, you requested 1500 (1200 in the messages, 300 in the completion)'
  const { mock, ask } = await setup(t, { script: [refusal(message)] })
  const { finish } = await ask({ maxTokens: 300 })
  assert.equal(finish.kind === 'error' && finish.failure.code, 'CONTEXT_WINDOW_EXCEEDED')
  assert.equal(mock.requests.length, 1)
})

test('a refusal that nothing cures is shown, and nothing is remembered', async t => {
  const message = 'unknown field stream_options'
  const { mock, notices, ask } = await setup(t, { script: [refusal(message), refusal(message)] })
  const { finish } = await ask()
  assert.equal(
    finish.kind === 'error' && finish.failure.message,
    `host answered 400: ${message} (invalid_request_error)`,
  )
  assert.equal(mock.requests.length, 2)
  assert.deepEqual(learned(notices), [])
  await ask()
  assert.equal('stream_options' in (mock.requests[2]?.body ?? {}), true)
})

test('a refusal that names no habit of ours is not tried again', async t => {
  const { mock, ask } = await setup(t, {
    script: [refusal('messages: text content blocks must be non-empty')],
  })
  await ask()
  assert.equal(mock.requests.length, 1)
})

test('a refusal with a status of the host’s own trouble is not tried again', async t => {
  const { mock, ask } = await setup(t, {
    script: [reply.status(500, { body: 'unknown field stream_options' })],
  })
  await ask()
  assert.equal(mock.requests.length, 1)
})

describe('how much the model thinks', () => {
  const cases: readonly (readonly [like: string, model: string, effort: string, fields: object])[] = [
    ['deepseek', 'deepseek-flash', 'high', { reasoning_effort: 'high' }],
    ['deepseek', 'deepseek-flash', 'ultra', { reasoning_effort: 'ultra' }],
    ['deepseek', 'deepseek-flash', 'none', { thinking: { type: 'disabled' } }],
    ['openai', 'gpt-5', 'minimal', { reasoning_effort: 'minimal' }],
    ['openrouter', 'any/model', 'xhigh', { reasoning: { effort: 'xhigh' } }],
    ['qwen', 'qwen3.8-max', 'none', { enable_thinking: false }],
    ['qwen', 'qwen3.8-max', 'high', { enable_thinking: true }],
    ['kimi', 'kimi-k2.6', 'none', { thinking: { type: 'disabled' } }],
    ['kimi', 'kimi-k3', 'max', { reasoning_effort: 'max' }],
    ['glm', 'glm-5.2', 'high', { thinking: { type: 'enabled' } }],
  ]
  for (const [like, model, effort, fields] of cases) {
    test(`${effort} on ${like}/${model} is ${JSON.stringify(fields)}`, async t => {
      const { mock, ask } = await setup(t, { rules: 'off' }, { like })
      await ask({ model, reasoningEffort: effort })
      const { body } = mock.requests[0] ?? {}
      const names = ['reasoning_effort', 'thinking', 'reasoning', 'enable_thinking']
      const sent = Object.entries(body ?? {}).filter(([field]) => names.includes(field))
      assert.deepEqual(Object.fromEntries(sent), fields)
    })
  }

  test('in a word the model does not have is refused before anything is sent', async t => {
    const { mock, ask } = await setup(t, {}, { like: 'deepseek' })
    const { finish } = await ask({ reasoningEffort: 'auto' })
    assert.deepEqual(finish, {
      kind: 'error',
      failure: {
        code: 'UNSUPPORTED_REASONING_EFFORT',
        message:
          'host/some-model takes reasoning effort none, low, high, max, minimal, medium, xhigh, ultra, not "auto"',
      },
    })
    assert.equal(mock.requests.length, 0)
  })
})

test('a forced tool turns thinking off where both are not to be had, and says so', async t => {
  const { mock, notices, ask } = await setup(t, {}, { like: 'deepseek', body: { tool_choice: 'required' } })
  const tools = [{ name: 'bash', description: '', parameters: { type: 'object' } }]
  assert.equal((await ask({ tools, reasoningEffort: 'high' })).text, 'fine')
  assert.deepEqual(mock.requests[0]?.body['thinking'], { type: 'disabled' })
  assert.deepEqual(
    notices.map(notice => notice.text),
    ['thinking is left out: the model cannot think while a tool is forced'],
  )
})

test('a temperature without effect is left out and said', async t => {
  const { mock, notices, ask } = await setup(t, {}, { like: 'deepseek' })
  await ask({ temperature: 0.2 })
  await ask({ temperature: 0.2, reasoningEffort: 'none' })
  assert.deepEqual(
    mock.requests.map(request => request.body['temperature']),
    [undefined, 0.2],
  )
  assert.deepEqual(
    notices.map(notice => [notice.code, notice.text]),
    [['OPTION_LEFT_OUT', 'temperature is left out: it has no effect while the model thinks']],
  )
})

test('options go out in the words of the wire, with the fields of the config', async t => {
  const { mock, ask } = await setup(t, { rules: 'off' }, { body: { top_p: 0.9 }, headers: { 'x-team': 'a' } })
  await ask({ maxTokens: 7, temperature: 0.5, stop: ['END'], reasoningEffort: 'low' })
  const { body, headers } = mock.requests[0] ?? {}
  const { messages: _messages, ...fields } = body ?? {}
  assert.deepEqual(fields, {
    model: 'some-model',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 7,
    temperature: 0.5,
    stop: ['END'],
    reasoning_effort: 'low',
    top_p: 0.9,
  })
  assert.equal(headers?.['x-team'], 'a')
  assert.equal(headers?.['user-agent'], 'dsh')
})

test('notes of a host go back to it unchanged, and to no other', async t => {
  const details = [{ type: 'reasoning.encrypted', data: 'xyz', index: 0 }]
  const said = (provider: string): Message =>
    createAssistantMessage({
      content: [{ type: 'text', text: 'yes' }],
      source: {
        kind: 'model',
        provider,
        model: 'm',
        replayState: { response: { reasoning_details: details } },
      },
    })
  const { mock, ask } = await setup(t, { rules: 'off' })
  await ask({ messages: [hello, said('host'), said('other'), hello] })
  const sent = mock.requests[0]?.body.messages ?? []
  assert.deepEqual(sent[1]?.['reasoning_details'], details)
  assert.equal(sent[2] !== undefined && 'reasoning_details' in sent[2], false)
})

test('thinking stays apart from the answer when the model is switched there and back', async t => {
  const { mock, ask } = await setup(t, { rules: 'off' })
  const source = { kind: 'model', provider: 'host', model: 'm' } as const
  const said = createAssistantMessage({
    content: [
      { type: 'reasoning', text: 'secret thought' },
      { type: 'text', text: 'yes' },
    ],
    source,
  })
  await ask({ model: 'deepseek-v4-pro', messages: [hello, said, hello] })
  await ask({ model: 'plain-model', messages: [hello, said, hello] })
  for (const request of mock.requests) assert.equal(request.text.includes('secret thought'), false)
})

test('an answer longer than the model writes is not asked for', async t => {
  const { mock, notices, ask } = await setup(t, {}, { like: 'deepseek' })
  await ask({ model: 'deepseek-flash', maxTokens: 500_000 })
  assert.equal(mock.requests[0]?.body['max_tokens'], 384_000)
  assert.deepEqual(
    notices.map(notice => notice.text),
    ['the answer is limited to 384000 tokens, the most this model writes'],
  )
})
