import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { checkChatRequest, deepseekRules, reply, startMockProvider } from './mock-provider.ts'
import type { MockProvider, MockProviderOptions } from './mock-provider.ts'

async function start(t: TestContext, options: MockProviderOptions): Promise<MockProvider> {
  const provider = await startMockProvider(options)
  t.after(() => provider.close())
  return provider
}

const user = { role: 'user', content: 'hi' }

/** One request by hand, and everything that comes back until the connection ends or `until` is there. */
async function exchange(
  provider: MockProvider,
  body: object | string,
  { until, key = 'sk-x' }: { until?: string; key?: string } = {},
): Promise<{ text: string; error: string | undefined }> {
  const { port } = new URL(provider.url)
  const json = typeof body === 'string' ? body : JSON.stringify(body)
  const head = `POST /chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n`
  const socket = connect(Number(port), '127.0.0.1')
  return await new Promise(resolve => {
    let text = ''
    let error: string | undefined
    socket.setEncoding('latin1')
    socket.on('data', (part: string) => {
      text += part
      if (until !== undefined && text.includes(until)) socket.destroy()
    })
    socket.on('error', (problem: Error & { code?: string }) => (error = problem.code))
    socket.on('close', () => resolve({ text, error }))
    socket.write(head + json)
  })
}

const ask = { model: 'm', messages: [user], stream: true }
const lastChunk = '\r\n0\r\n\r\n'

test('the script is answered in order, and what it does not have is refused', async t => {
  const provider = await start(t, {
    script: [reply.text('one'), request => reply.text(`two of ${request.n}`)],
  })
  assert.match((await exchange(provider, ask, { until: lastChunk })).text, /"content":"one"/)
  assert.match((await exchange(provider, ask, { until: lastChunk })).text, /"content":"of "[^]*"content":"2"/)
  const { text } = await exchange(provider, ask, { until: lastChunk })
  assert.match(text, /^HTTP\/1\.1 400 [^]*the script has no answer for request 3/)
})

test('side requests do not count against the script', async t => {
  const provider = await start(t, {
    script: [reply.text('main')],
    side: request => (request.body.tools === undefined ? reply.text('side') : undefined),
  })
  const tools = [{ type: 'function', function: { name: 'x', parameters: { type: 'object' } } }]
  assert.match((await exchange(provider, ask, { until: lastChunk })).text, /"content":"side"/)
  assert.match((await exchange(provider, { ...ask, tools }, { until: lastChunk })).text, /"content":"main"/)
})

test('a request without stream gets one JSON answer', async t => {
  const provider = await start(t, {
    script: [reply.toolCall('bash', { a: 1 }, { id: 'c1', reasoning: 'hm' })],
  })
  const { text } = await exchange(provider, { ...ask, stream: false }, { until: lastChunk })
  const json = JSON.parse(/\{.*\}/.exec(text)?.[0] ?? '') as { choices: unknown[] }
  assert.deepEqual(json.choices, [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"a":1}' } }],
      },
      finish_reason: 'tool_calls',
    },
  ])
})

test('a body may end with its connection, in the middle, or never', async t => {
  const events = [{ a: 1 }, { b: 2 }]
  const provider = await start(t, {
    script: [
      reply.sse(events).unchunked(),
      reply.sse(events).cut({ pieces: 1, how: 'fin' }),
      reply.sse(events).cut({ bytes: 10, how: 'rst' }),
      reply.nothing('rst'),
      reply.raw('not http'),
    ],
  })
  const whole = await exchange(provider, ask)
  assert.match(
    whole.text,
    /connection: close\r\n\r\ndata: \{"a":1\}\n\ndata: \{"b":2\}\n\ndata: \[DONE\]\n\n$/,
  )
  assert.match((await exchange(provider, ask)).text, /data: \{"a":1\}\n\n\r\n$/)
  assert.equal((await exchange(provider, ask)).error, 'ECONNRESET')
  assert.deepEqual(await exchange(provider, ask), { text: '', error: 'ECONNRESET' })
  assert.equal((await exchange(provider, ask)).text, 'not http')
})

test('a gate holds an answer back until it opens', async t => {
  let open = (): void => {}
  const gate = new Promise<void>(resolve => (open = resolve))
  const provider = await start(t, { script: [reply.sse([{ a: 1 }, { b: 2 }]).gate(gate, 1)] })
  const first = await exchange(provider, ask, { until: '"a":1' })
  assert.equal(first.text.includes('"b":2'), false)
  open()
  await provider.requests[0]?.closed
})

test('requests can be waited for, and know when their client has left', async t => {
  const provider = await start(t, { script: [reply.nothing('hold')] })
  const { port } = new URL(provider.url)
  const socket = connect(Number(port), '127.0.0.1')
  const json = JSON.stringify(ask)
  socket.write(
    `POST /chat/completions HTTP/1.1\r\nauthorization: Bearer x\r\ncontent-length: ${json.length}\r\n\r\n${json}`,
  )
  const request = await provider.received(1)
  assert.equal(request.body.model, 'm')
  socket.destroy()
  await request.closed
  assert.equal(await provider.received(1), request)
})

test('a chunked request is read', async t => {
  const provider = await start(t, { script: [reply.text('ok')] })
  const { port } = new URL(provider.url)
  const socket = connect(Number(port), '127.0.0.1')
  const json = JSON.stringify(ask)
  socket.write(
    'POST /chat/completions HTTP/1.1\r\nauthorization: Bearer x\r\ntransfer-encoding: chunked\r\n\r\n',
  )
  socket.write(
    `5\r\n${json.slice(0, 5)}\r\n${(json.length - 5).toString(16)}\r\n${json.slice(5)}\r\n0\r\n\r\n`,
  )
  assert.equal((await provider.received(1)).text, json)
  socket.destroy()
})

test('keys are checked, and a refusal shows the end of one as the real host does', async t => {
  const provider = await start(t, { script: [reply.text('ok')], key: 'sk-right' })
  const refused = await exchange(provider, ask, { until: lastChunk, key: 'sk-wrong' })
  assert.match(refused.text, /^HTTP\/1\.1 401 [^]*Your api key: \*\*\*\*rong is invalid/)
  assert.match((await exchange(provider, ask, { until: lastChunk, key: 'sk-right' })).text, /"ok"/)
})

test('the ledger counts a shared beginning as read from the cache', async t => {
  const provider = await start(t, { fallback: reply.text('four', { reasoning: 'eight888' }) })
  const long = { role: 'user', content: 'x'.repeat(1000) }
  await exchange(provider, { ...ask, messages: [long] }, { until: lastChunk })
  await exchange(provider, { ...ask, messages: [long, user] }, { until: lastChunk })
  await exchange(provider, { ...ask, model: 'other', messages: [long] }, { until: lastChunk })
  const [first, second, third] = provider.ledger.entries
  assert.deepEqual(first, {
    request: 1,
    model: 'm',
    inputTokens: 259,
    cacheReadTokens: 0,
    outputTokens: 3,
    reasoningTokens: 2,
  })
  assert.deepEqual([second?.cacheReadTokens, second?.inputTokens], [256, 11])
  assert.equal(third?.cacheReadTokens, 0)
  assert.equal(provider.ledger.total.outputTokens, 9)
})

const call = (args = '{}', id = 'c'): object => ({
  id,
  type: 'function',
  function: { name: 'bash', arguments: args },
})
const calling = (...calls: object[]): object => ({
  role: 'assistant',
  content: null,
  reasoning_content: '',
  tool_calls: calls,
})
const tool = (id = 'c'): object => ({ role: 'tool', tool_call_id: id, content: 'ok' })
const refused: readonly (readonly [title: string, body: unknown, problem: RegExp])[] = [
  ['no messages', { messages: [] }, /messages must be a non-empty array/],
  ['no model', { model: '', messages: [user] }, /model must be/],
  ['an unknown role', { messages: [{ role: 'developer', content: 'x' }] }, /unknown variant `developer`/],
  [
    'an empty answer',
    { messages: [user, { role: 'assistant', content: '' }] },
    /must have content or tool_calls/,
  ],
  [
    'calls without thinking',
    { messages: [user, { ...calling(call()), reasoning_content: undefined }, tool()] },
    /must be passed back/,
  ],
  [
    'arguments that are no object',
    { messages: [user, calling(call('[1]')), tool()] },
    /text of a JSON object/,
  ],
  ['broken arguments', { messages: [user, calling(call('{"a')), tool()] }, /text of a JSON object/],
  [
    'a call without a result',
    { messages: [user, calling(call()), user] },
    /without a tool message before messages\[2\]: c/,
  ],
  ['a call without a result at the end', { messages: [user, calling(call())] }, /before the end: c/],
  ['a result without a call', { messages: [user, tool()] }, /must answer a preceding message/],
  [
    'a second result',
    { messages: [user, calling(call()), tool(), tool()] },
    /must answer a preceding message/,
  ],
  ['one id twice', { messages: [user, calling(call(), call()), tool()] }, /is there twice/],
  ['an empty id', { messages: [user, calling(call('{}', '')), tool('')] }, /id must be a non-empty string/],
  ['an empty message', { messages: [{ role: 'user', content: '' }] }, /non-empty string or array/],
  ['an effort nobody has', { messages: [user], reasoning_effort: 'auto' }, /reasoning_effort must be one of/],
  [
    'a forced tool while thinking',
    { messages: [user], tool_choice: 'required' },
    /Thinking mode does not support this tool_choice/,
  ],
  ['too large an answer', { messages: [user], max_tokens: 400_000 }, /max_tokens must be an integer/],
  [
    'the wrong word for the limit',
    { messages: [user], max_completion_tokens: 4 },
    /Use 'max_tokens' instead/,
  ],
  [
    'a tool without an object',
    { messages: [user], tools: [{ type: 'function', function: { name: 'x', parameters: {} } }] },
    /schema must be of type "object"/,
  ],
  [
    'a bad tool name',
    {
      messages: [user],
      tools: [{ type: 'function', function: { name: 'a.b', parameters: { type: 'object' } } }],
    },
    /name is not valid/,
  ],
]
for (const [title, body, problem] of refused) {
  test(`a strict host refuses ${title}`, () => {
    const problems = checkChatRequest(JSON.stringify({ model: 'm', ...(body as object) }))
    assert.match(problems.join('\n'), problem)
  })
}

for (const [text, isRefused] of [
  ['\\ud83d', true],
  ['\\udc33', true],
  ['\\ud83dx\\udc33', true],
  ['\\ud83d\\udc33', false],
  ['\\\\ud83d', false],
  ['\\\\\\ud83d', true],
  ['🐳', false],
] as const) {
  test(`a strict host ${isRefused ? 'refuses' : 'takes'} the escape ${text}`, () => {
    const body = `{"model":"m","messages":[{"role":"user","content":"${text}"}]}`
    assert.deepEqual(checkChatRequest(body), isRefused ? ['unpaired surrogate in the request body'] : [])
  })
}

test('a strict host takes a sound history', () => {
  const messages = [
    user,
    calling(call('{"a":1}', 'x'), call('{}', 'y')),
    tool('y'),
    tool('x'),
    { role: 'assistant', content: 'ok' },
  ]
  assert.deepEqual(checkChatRequest(JSON.stringify({ model: 'm', messages })), [])
})

test('a strict host goes by rules that a test may change', () => {
  const body = JSON.stringify({
    model: 'm',
    messages: [user, calling(call()), tool()],
    stream: true,
    stream_options: {},
  })
  const rules = { ...deepseekRules, reasoning: 'forbidden', streamOptions: false } as const
  assert.deepEqual(checkChatRequest(body, rules), [
    'unknown field: stream_options',
    'messages[1]: reasoning_content is not supported in input messages',
  ])
})
