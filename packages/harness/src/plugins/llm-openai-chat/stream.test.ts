import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { createUserMessage } from '../../core/llm/index.ts'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import type { CollectedAnswer, MockReply } from '../../testing/index.ts'
import { OpenAIChatAdapter } from './index.ts'
import type { ProviderConfig, WireNotice } from './index.ts'

const messages = [createUserMessage({ content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } })]

/** What one scripted answer comes out as. */
async function answerTo(
  t: TestContext,
  answer: MockReply,
  config: ProviderConfig = {},
): Promise<CollectedAnswer & { notices: WireNotice[] }> {
  const provider = await startMockProvider({ script: [answer] })
  const notices: WireNotice[] = []
  const adapter = new OpenAIChatAdapter(
    { env: provider.env, lingerMs: 20, providers: { deepseek: config } },
    notice => notices.push(notice),
  )
  t.after(async () => {
    adapter.close()
    await provider.close()
  })
  const collected = await collectAnswer(
    adapter.stream({ provider: 'deepseek', model: 'deepseek-flash', messages }),
  )
  return { ...collected, notices }
}

const delta = (part: object, finish: string | null = null): object => ({
  id: 'x',
  choices: [{ index: 0, delta: part, finish_reason: finish }],
})
const stop = delta({}, 'stop')
const content = (text: string): object => delta({ content: text })

function failureOf({ finish }: CollectedAnswer): { code: string; message: string; status?: number } {
  assert.equal(finish.kind, 'error')
  assert.ok(finish.kind === 'error')
  return finish.failure
}

test('an answer is thinking, text, usage and one finish, each block started and ended once', async t => {
  const { chunks } = await answerTo(t, reply.text('Hello wide world', { reasoning: 'Let me see.' }))
  assert.deepEqual(chunks, [
    { type: 'block-start', index: 0, blockType: 'reasoning' },
    { type: 'reasoning-delta', index: 0, text: 'Let me see.' },
    { type: 'block-end', index: 0, block: { type: 'reasoning', text: 'Let me see.' } },
    { type: 'block-start', index: 1, blockType: 'text' },
    { type: 'text-delta', index: 1, text: 'Hello wide world' },
    { type: 'block-end', index: 1, block: { type: 'text', text: 'Hello wide world' } },
    {
      type: 'usage',
      usage: { inputTokens: 14, outputTokens: 7, cacheReadTokens: 0, reasoningTokens: 3 },
    },
    { type: 'finish', reason: { kind: 'stop' } },
  ])
})

test('thinking that goes on after text is a block of its own, in its place', async t => {
  const events = [
    delta({ reasoning_content: 'a' }),
    content('b'),
    delta({ reasoning_content: 'c' }),
    content('d'),
  ]
  const { chunks } = await answerTo(t, reply.sse([...events, stop]))
  const blocks = chunks.flatMap(chunk => (chunk.type === 'block-end' ? [chunk.block] : []))
  assert.deepEqual(blocks, [
    { type: 'reasoning', text: 'a' },
    { type: 'text', text: 'b' },
    { type: 'reasoning', text: 'c' },
    { type: 'text', text: 'd' },
  ])
})

const wild = '溝内渐🐳é — "quoted" \\ 👩‍👩‍👧'

test('one byte at a time give every character whole, in text, thinking and arguments', async t => {
  const call = { index: 0, id: 'c', function: { name: 'echo', arguments: JSON.stringify({ text: wild }) } }
  const events = [delta({ reasoning_content: wild }), content(wild), delta({ tool_calls: [call] })]
  const answer = await answerTo(t, reply.sse([...events, stop]).bytewise())
  assert.equal(answer.reasoning, wild)
  assert.equal(answer.text, wild)
  assert.deepEqual(JSON.parse(answer.calls[0]?.arguments ?? ''), { text: wild })
})

test('an emoji in two escaped halves in two events is one character, and no delta holds half of it', async t => {
  const half = (escape: string): string =>
    `data: {"choices":[{"index":0,"delta":{"content":"${escape}"}}]}\n\n`
  const answer = await answerTo(t, reply.sse([half('a\\ud83d'), half('\\udc33b'), stop]).pace(2))
  assert.equal(answer.text, 'a🐳b')
  for (const chunk of answer.chunks) {
    if (chunk.type === 'text-delta') assert.ok(chunk.text.isWellFormed(), JSON.stringify(chunk.text))
  }
})

test('half a character that stays alone becomes U+FFFD', async t => {
  const event = 'data: {"choices":[{"index":0,"delta":{"content":"x\\ud83d"}}]}\n\n'
  assert.equal((await answerTo(t, reply.sse([event, stop]))).text, 'x\ufffd')
})

test('every odd but legal form of an event is read', async t => {
  const json = JSON.stringify(content('ok')).replace('"content"', '\ndata: "content"')
  const events = [
    '\ufeff: OPENROUTER PROCESSING\n\n',
    ':\n',
    ': keep-alive\n\n',
    '\n\n',
    'event: ping\ndata: {}\n\n',
    'id: 7\nretry: 100\n',
    `data:${JSON.stringify(content('no space '))}\n\n`,
    `data: ${JSON.stringify(content('crlf '))}\r\n\r\n`,
    `data: ${json}\n\n`,
    'unknown: field\n\n',
    `data: ${JSON.stringify(stop)}\n\n`,
  ]
  const answer = await answerTo(t, reply.sse(events))
  assert.equal(answer.text, 'no space crlf ok')
  assert.deepEqual(answer.finish, { kind: 'stop' })
  assert.deepEqual(answer.notices, [])
})

test('a data line that is no JSON is told and passed over', async t => {
  const answer = await answerTo(
    t,
    reply.sse([content('a'), 'data: : OPENROUTER PROCESSING\n\n', content('b'), stop]),
  )
  assert.equal(answer.text, 'ab')
  assert.deepEqual(answer.notices, [
    {
      code: 'SKIPPED_LINE',
      provider: 'deepseek',
      model: 'deepseek-flash',
      text: 'a line of the stream is no JSON: : OPENROUTER PROCESSING',
    },
  ])
})

test('a last event without its blank line counts', async t => {
  const answer = await answerTo(
    t,
    reply.sse([content('whole'), `data: ${JSON.stringify(stop)}`], { done: false }).unchunked(),
  )
  assert.equal(answer.text, 'whole')
  assert.deepEqual(answer.finish, { kind: 'stop' })
})

test('a compressed stream is read although plain bytes were asked for', async t => {
  const { gzipSync } = await import('node:zlib')
  const body = gzipSync(`data: ${JSON.stringify(content('zipped'))}\n\ndata: ${JSON.stringify(stop)}\n\n`)
  const headers = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }
  assert.equal((await answerTo(t, reply.status(200, { headers, body }))).text, 'zipped')
})

for (const type of ['application/json', 'text/plain', '']) {
  test(`events under the content type "${type}" are read as events`, async t => {
    const answer = reply.sse([content('sniffed'), stop], { headers: { 'content-type': type } })
    assert.equal((await answerTo(t, answer)).text, 'sniffed')
  })
}

test('an event of several megabytes in many pieces is read', async t => {
  const long = 'x'.repeat(3_000_000)
  assert.equal((await answerTo(t, reply.sse([content(long), stop]))).text.length, long.length)
})

describe('events without a message', () => {
  for (const event of [
    { choices: null },
    { id: 'x' },
    {},
    { choices: [] },
    { choices: [{ index: 0, delta: null }] },
    { choices: [{ index: 0 }] },
    { choices: [null, 3] },
    [],
    { choices: [{ index: 0, delta: { content: null, tool_calls: null, role: 'assistant' } }] },
    { choices: [{ index: 1, delta: { content: 'another choice' } }] },
  ]) {
    test(`${JSON.stringify(event)} changes nothing`, async t => {
      const answer = await answerTo(t, reply.sse([event, content('fine'), event, stop, event]))
      assert.equal(answer.text, 'fine')
      assert.deepEqual(answer.finish, { kind: 'stop' })
    })
  }

  test('usage counts when it comes after the finish reason, and the last one wins', async t => {
    const usage = (completion: number): object => ({
      choices: [],
      usage: { prompt_tokens: 100, completion_tokens: completion, prompt_cache_hit_tokens: 64 },
    })
    const answer = await answerTo(t, reply.sse([usage(1), content('a'), usage(2), stop, usage(3)]))
    assert.deepEqual(answer.usage, { inputTokens: 36, outputTokens: 3, cacheReadTokens: 64 })
    assert.equal(answer.chunks.filter(chunk => chunk.type === 'usage').length, 1)
  })
})

test('the end of a stream comes at [DONE], though the socket stays open', async t => {
  const answer = await answerTo(t, reply.sse([content('done'), stop]).hold())
  assert.equal(answer.text, 'done')
  assert.deepEqual(answer.finish, { kind: 'stop' })
})

test('the end of a stream comes soon after the finish reason where no [DONE] and no end of the socket follow', async t => {
  const answer = await answerTo(t, reply.sse([content('over'), stop], { done: false }).hold())
  assert.equal(answer.text, 'over')
  assert.deepEqual(answer.finish, { kind: 'stop' })
})

for (const end of ['fin', 'rst'] as const) {
  test(`the end of a stream is good where the connection ends with ${end} after the finish reason`, async t => {
    const answer = await answerTo(t, reply.sse([content('over'), stop]).cut({ pieces: 2, how: end }))
    assert.equal(answer.text, 'over')
    assert.deepEqual(answer.finish, { kind: 'stop' })
  })
}

for (const word of ['eos', 'end_turn', 'max_tool_calls', 'something_new']) {
  test(`the end of a stream with the reason "${word}" is a normal one`, async t => {
    const answer = await answerTo(t, reply.sse([content('fine'), delta({}, word)]))
    assert.deepEqual(answer.finish, { kind: 'stop' })
    assert.equal(answer.text, 'fine')
  })
}

test('the end of a stream with a reason nobody knows is told', async t => {
  const { notices } = await answerTo(t, reply.sse([content('fine'), delta({}, 'something_new')]))
  assert.deepEqual(
    notices.map(notice => notice.text),
    ['finish reason "something_new" counts as a normal end'],
  )
})

test('the end of a stream with an empty reason and [DONE] is a normal one', async t => {
  assert.deepEqual((await answerTo(t, reply.sse([content('fine'), delta({}, '')]))).finish, {
    kind: 'stop',
  })
})

const call = { index: 0, id: 'c1', function: { name: 'bash', arguments: '{"command": "l' } }
const beforeTheLimit: Readonly<Record<string, readonly object[]>> = {
  text: [content('half a')],
  'half a tool call': [delta({ tool_calls: [call] })],
  thinking: [delta({ reasoning_content: 'hm' })],
  nothing: [],
}
for (const [what, events] of Object.entries(beforeTheLimit)) {
  test(`the end of a stream at the output limit after ${what} is max-tokens, and no half call is left`, async t => {
    const answer = await answerTo(t, reply.sse([...events, delta({}, 'length')]))
    assert.deepEqual(answer.finish, { kind: 'max-tokens' })
    assert.deepEqual(answer.calls, [])
  })
}

test('the end of a stream by the content filter is a named failure that is not tried again', async t => {
  const failure = failureOf(await answerTo(t, reply.sse([content('I'), delta({}, 'content_filter')])))
  assert.equal(failure.code, 'UNSUPPORTED_CONTENT')
  assert.equal(failure.message, 'the content filter of deepseek stopped the answer (content_filter)')
})

for (const [word, code] of [
  ['network_error', 'TRANSPORT'],
  ['error', 'SERVER'],
  ['server_error', 'SERVER'],
  ['upstream_error', 'SERVER'],
  ['insufficient_system_resource', 'SERVER'],
] as const) {
  for (const events of [[content('some')], []]) {
    test(`the end of a stream with "${word}" ${events.length > 0 ? 'after text' : 'alone'} is the failure ${code}`, async t => {
      const failure = failureOf(await answerTo(t, reply.sse([...events, delta({}, word)])))
      assert.equal(failure.code, code)
      assert.match(failure.message, new RegExp(`its own failure as the end of the answer: ${word}$`))
    })
  }
}

test('the end of a stream with nothing said is EMPTY_RESPONSE, its usage counted', async t => {
  const usage = { choices: [], usage: { prompt_tokens: 9, completion_tokens: 0 } }
  const answer = await answerTo(t, reply.sse([stop, usage]))
  assert.equal(failureOf(answer).code, 'EMPTY_RESPONSE')
  assert.deepEqual(answer.usage, { inputTokens: 9, outputTokens: 0 })
})

describe('a stream that breaks off', () => {
  const events = [content('one '), content('two'), stop]

  test('with the end of the connection in a body without a length is STREAM_CLOSED', async t => {
    const answer = await answerTo(t, reply.sse(events).unchunked().cut({ pieces: 2, how: 'fin' }))
    assert.equal(failureOf(answer).code, 'STREAM_CLOSED')
    assert.equal(answer.text, 'one two')
  })

  test('in the middle of a chunked body is STREAM_CLOSED', async t => {
    const answer = await answerTo(t, reply.sse(events).cut({ pieces: 2, how: 'fin' }))
    assert.equal(failureOf(answer).code, 'STREAM_CLOSED')
    assert.equal(answer.text, 'one two')
  })

  test('in the middle of a line is STREAM_CLOSED', async t => {
    const answer = await answerTo(t, reply.sse(events).unchunked().cut({ bytes: 90, how: 'fin' }))
    assert.equal(failureOf(answer).code, 'STREAM_CLOSED')
    assert.equal(answer.text, 'one ')
  })

  test('with a reset is a failure of the transport worth another try, the text before it shown', async t => {
    let release = (): void => {}
    const seen = new Promise<void>(resolve => (release = resolve))
    const provider = await startMockProvider({
      script: [reply.sse(events).gate(seen, 2).cut({ pieces: 2, how: 'rst' })],
    })
    const adapter = new OpenAIChatAdapter({ env: provider.env })
    t.after(() => provider.close())
    const stream = adapter.stream({ provider: 'deepseek', model: 'deepseek-flash', messages })
    const texts: string[] = []
    const reading = (async () => {
      for await (const chunk of stream) {
        if (chunk.type !== 'text-delta') continue
        texts.push(chunk.text)
        if (texts.join('') === 'one two') release()
      }
    })()
    await assert.rejects(reading, ({ code }: { code: string }) =>
      ['TRANSPORT', 'STREAM_CLOSED'].includes(code),
    )
    assert.equal(texts.join(''), 'one two')
  })

  test('after a whole tool call is a failure, and the call is not run twice by being finished', async t => {
    const call = { index: 0, id: 'c', function: { name: 'bash', arguments: '{"command":"ls"}' } }
    const answer = await answerTo(t, reply.sse([delta({ tool_calls: [call] })], { done: false }).unchunked())
    assert.equal(failureOf(answer).code, 'STREAM_CLOSED')
  })

  test('with an empty body and status 200 is STREAM_CLOSED', async t => {
    assert.equal(failureOf(await answerTo(t, reply.status(200))).code, 'STREAM_CLOSED')
  })
})

test('one JSON answer to a request for a stream is taken', async t => {
  const message = {
    role: 'assistant',
    reasoning_content: 'hm',
    content: 'plain',
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: '{}' } }],
  }
  const usage = { prompt_tokens: 5, completion_tokens: 2 }
  const answer = await answerTo(
    t,
    reply.json({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage }),
  )
  assert.equal(answer.text, 'plain')
  assert.equal(answer.reasoning, 'hm')
  assert.deepEqual(answer.calls, [{ id: 'c1', name: 'bash', arguments: '{}' }])
  assert.deepEqual(answer.usage, { inputTokens: 5, outputTokens: 2 })
  assert.deepEqual(answer.finish, { kind: 'tool-calls' })
})

test('blank lines before the JSON are waiting, not content', async t => {
  const body = `\n\n\n${JSON.stringify({ choices: [{ message: { content: 'late' }, finish_reason: 'stop' }] })}`
  assert.equal((await answerTo(t, reply.status(200, { body }))).text, 'late')
})

test('a web page is INVALID_RESPONSE and shows its beginning', async t => {
  const headers = { 'content-type': 'text/html' }
  const failure = failureOf(
    await answerTo(t, reply.status(200, { headers, body: '<html>Sign in to Wi-Fi</html>' })),
  )
  assert.equal(failure.code, 'INVALID_RESPONSE')
  assert.equal(
    failure.message,
    'deepseek answered with neither events nor JSON: <html>Sign in to Wi-Fi</html>',
  )
})

const errors: readonly (readonly [body: unknown, code: string, message: string])[] = [
  [{ error: { message: 'overloaded', code: 529 } }, 'SERVER', 'deepseek reported an error: overloaded'],
  [{ error: 'something broke' }, 'SERVER', 'deepseek reported an error: something broke'],
  [{ object: 'error', message: 'model busy', code: 503 }, 'SERVER', 'deepseek reported an error: model busy'],
  [
    { code: 'InvalidParameter', message: 'bad value', request_id: 'r' },
    'INVALID_REQUEST',
    'deepseek reported an error: bad value (InvalidParameter)',
  ],
  [
    [{ error: { code: 429, message: 'Too many requests', status: 'RESOURCE_EXHAUSTED' } }],
    'RATE_LIMIT',
    'deepseek reported an error: Too many requests',
  ],
  [
    { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    'QUOTA',
    'deepseek reported an error: insufficient balance — the balance is used up; top up at https://platform.deepseek.com/top_up',
  ],
  [
    {
      error: {
        message: "This model's maximum context length is 1000 tokens",
        code: 'context_length_exceeded',
      },
    },
    'CONTEXT_WINDOW_EXCEEDED',
    "deepseek reported an error: This model's maximum context length is 1000 tokens (context_length_exceeded)",
  ],
]
for (const [body, code, message] of errors) {
  test(`the error ${JSON.stringify(body)} under status 200 is ${code}`, async t => {
    const failure = failureOf(await answerTo(t, reply.json(body)))
    assert.equal(failure.code, code)
    assert.equal(failure.message, message)
  })

  test(`the error ${JSON.stringify(body)} in the middle of a stream is ${code}`, async t => {
    const answer = await answerTo(t, reply.sse([content('begun'), body as object, content('not read')]))
    assert.equal(failureOf(answer).code, code)
    assert.equal(answer.text, 'begun')
  })
}

test('an event named error with a bare message is a failure', async t => {
  const event = 'event: error\ndata: {"message":"server overloaded"}\n\n'
  assert.equal(failureOf(await answerTo(t, reply.sse([content('a'), event]))).code, 'SERVER')
})

describe('thinking', () => {
  for (const field of ['reasoning_content', 'reasoning', 'reasoning_text', 'thinking']) {
    test(`in the field ${field} is shown as thinking`, async t => {
      const answer = await answerTo(t, reply.sse([delta({ [field]: 'deep' }), content('ok'), stop]))
      assert.equal(answer.reasoning, 'deep')
      assert.equal(answer.text, 'ok')
    })
  }

  test('in reasoning_details is shown, and not twice where reasoning says it too', async t => {
    const detail = { type: 'reasoning.text', text: 'deep', index: 0 }
    const alone = await answerTo(t, reply.sse([delta({ reasoning_details: [detail] }), content('ok'), stop]))
    assert.equal(alone.reasoning, 'deep')
    const both = await answerTo(
      t,
      reply.sse([delta({ reasoning: 'deep', reasoning_details: [detail] }), content('ok'), stop]),
    )
    assert.equal(both.reasoning, 'deep')
    assert.deepEqual(both.chunks.at(-1), { type: 'finish', reason: { kind: 'stop' } })
  })

  test('that is signed or hidden is kept whole for the host', async t => {
    const details = [
      { type: 'reasoning.text', text: 'a', index: 0 },
      { type: 'reasoning.text', text: 'b', signature: 'sig', index: 0 },
      { type: 'reasoning.encrypted', data: 'xyz', index: 1 },
    ]
    const events = details.map(detail => delta({ reasoning_details: [detail] }))
    const answer = await answerTo(t, reply.sse([...events, content('ok'), stop]))
    assert.deepEqual(answer.chunks.at(-1), {
      type: 'finish',
      reason: { kind: 'stop' },
      replayState: {
        response: {
          reasoning_details: [
            { type: 'reasoning.text', text: 'ab', index: 0, signature: 'sig' },
            { type: 'reasoning.encrypted', data: 'xyz', index: 1 },
          ],
        },
      },
    })
  })

  test('as a part of the content is thinking', async t => {
    const parts = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'deep' }] },
      { type: 'text', text: 'ok' },
    ]
    const answer = await answerTo(t, reply.sse([delta({ content: parts }), stop]))
    assert.equal(answer.reasoning, 'deep')
    assert.equal(answer.text, 'ok')
  })
})
