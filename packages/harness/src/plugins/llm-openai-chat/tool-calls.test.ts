import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { Message } from '@dsh/protocol'
import { createAssistantMessage, createToolResultMessage, createUserMessage } from '../../core/llm/index.ts'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import type { CollectedAnswer } from '../../testing/index.ts'
import { OpenAIChatAdapter } from './index.ts'
import type { WireNotice } from './index.ts'

const hello = createUserMessage({ content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } })

type Fragment = {
  index?: number | null
  id?: string | null
  name?: string | null
  args?: unknown
}

const toCall = ({ index, id, name, args }: Fragment): object => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
})

const event = (calls: readonly Fragment[], finish: string | null = null): object => ({
  choices: [{ index: 0, delta: { tool_calls: calls.map(toCall) }, finish_reason: finish }],
})

/** Each list of fragments is one event, read on its own. */
async function callsOf(
  t: TestContext,
  events: readonly (readonly Fragment[])[],
  options: { messages?: readonly Message[]; finish?: string } = {},
): Promise<CollectedAnswer & { notices: WireNotice[] }> {
  const { messages = [hello], finish = 'tool_calls' } = options
  const last = { choices: [{ index: 0, delta: {}, finish_reason: finish }] }
  const script = [reply.sse([...events.map(calls => event(calls)), last]).pace(1)]
  const provider = await startMockProvider({ script, rules: 'off' })
  const notices: WireNotice[] = []
  const adapter = new OpenAIChatAdapter({ env: provider.env }, notice => notices.push(notice))
  t.after(async () => {
    adapter.close()
    await provider.close()
  })
  const stream = adapter.stream({ provider: 'deepseek', model: 'deepseek-flash', messages })
  return { ...(await collectAnswer(stream)), notices }
}

const one = (args: string, id = 'a', name = 'f'): object[] => [{ id, name, arguments: args }]

describe('fragments of one call are one call', () => {
  const cases: Readonly<Record<string, readonly [events: Fragment[][], calls: object[]]>> = {
    'when the last one is empty': [
      [[{ index: 0, id: 'a', name: 'f', args: '{"q":1}' }], [{ index: 0, args: '' }]],
      one('{"q":1}'),
    ],
    'when the id is in the first one alone': [
      [
        [{ index: 0, id: 'a', name: 'f', args: '' }],
        ...['{"q"', ':', '1', ',"r"', ':2}'].map(args => [{ index: 0, args }]),
      ],
      one('{"q":1,"r":2}'),
    ],
    'when the id is in each of them': [
      [[{ id: 'a', name: 'f', args: '{"qu' }], [{ id: 'a', args: 'ery":1}' }]],
      one('{"query":1}'),
    ],
    'when a last one repeats all arguments': [
      [
        [{ id: 'a', name: 'f', args: '{"qu' }],
        [{ id: 'a', args: 'ery":1}' }],
        [{ id: 'a', args: '{"query":1}' }],
      ],
      one('{"query":1}'),
    ],
    'when later ones carry an empty id and no name': [
      [
        [{ index: 0, id: 'a', name: 'Glob', args: '' }],
        [{ index: 0, id: '', name: null, args: '{"q"' }],
        [{ index: 0, id: '', name: '', args: ':1}' }],
      ],
      one('{"q":1}', 'a', 'Glob'),
    ],
    'when id and name come in the last one': [
      [
        [{ index: 0, id: '', name: '', args: '{"q"' }],
        [{ index: 0, args: ':1}' }],
        [{ index: 0, id: 'a', name: 'f', args: '' }],
      ],
      one('{"q":1}'),
    ],
    'when the name comes in each of them': [
      [[{ index: 0, id: 'a', name: 'f', args: '{"q"' }], [{ index: 0, id: 'a', name: 'f', args: ':1}' }]],
      one('{"q":1}'),
    ],
    'when the name comes in pieces': [
      [[{ index: 0, id: 'a', name: 'read_' }], [{ index: 0, name: 'file', args: '{}' }]],
      one('{}', 'a', 'read_file'),
    ],
    'when each of them has a new id and only the first a name': [
      [[{ index: 0, id: 'a', name: 'f', args: '{"q"' }], [{ index: 0, id: 'b', args: ':1}' }]],
      one('{"q":1}'),
    ],
    'when an empty object stands for the arguments that follow': [
      [
        [{ index: 0, id: 'a', name: 'f', args: '{}' }],
        [{ index: 0, args: '{"q":' }],
        [{ index: 0, args: '1}' }],
      ],
      one('{"q":1}'),
    ],
    'when the arguments are an object and not its text': [
      [[{ index: 0, id: 'a', name: 'f', args: { q: 1 } }]],
      one('{"q":1}'),
    ],
    'when there are no arguments at all': [[[{ index: 0, id: 'a', name: 'f' }]], one('')],
    'when the arguments stay half': [[[{ index: 0, id: 'a', name: 'f', args: '{"q": "l' }]], one('{"q": "l')],
    'when the arguments are written twice over': [
      [[{ index: 0, id: 'a', name: 'f', args: '{}{}' }]],
      one('{}{}'),
    ],
  }
  for (const [title, [events, calls]] of Object.entries(cases)) {
    test(title, async t => {
      const answer = await callsOf(t, events)
      assert.deepEqual(answer.calls, calls)
      assert.deepEqual(answer.finish, { kind: 'tool-calls' })
    })
  }
})

const f = { name: 'f', args: '{}' }
const cases: Readonly<Record<string, Fragment[][]>> = {
  'without an index, by their ids': [[{ id: 'x', ...f }], [{ id: 'y', ...f }]],
  'without an index, in one event': [
    [
      { id: 'x', ...f },
      { id: 'y', ...f },
    ],
  ],
  'under the same index, by id and name': [[{ index: 0, id: 'x', ...f }], [{ index: 0, id: 'y', ...f }]],
  'by their index, in turns': [
    [{ index: 0, id: 'x', name: 'f', args: '{' }],
    [{ index: 1, id: 'y', name: 'f', args: '{' }],
    [{ index: 0, args: '}' }],
    [{ index: 1, args: '}' }],
  ],
  'with an index of null': [[{ index: null, id: 'x', ...f }], [{ index: null, id: 'y', ...f }]],
}
for (const [title, events] of Object.entries(cases)) {
  test(`different calls stay apart ${title}`, async t => {
    const { calls } = await callsOf(t, events)
    assert.deepEqual(calls, [
      { id: 'x', name: 'f', arguments: '{}' },
      { id: 'y', name: 'f', arguments: '{}' },
    ])
  })
}

for (const id of [undefined, null, '']) {
  for (const index of [[0, 1] as const, undefined]) {
    test(`different calls stay apart with the id ${JSON.stringify(id)} and ${index ? 'an' : 'no'} index, under ids of our own`, async t => {
      const fragments = [0, 1].map(at => ({
        ...f,
        ...(id === undefined ? {} : { id }),
        ...(index && { index: index[at] ?? 0 }),
      }))
      const { calls, chunks } = await callsOf(t, [[fragments[0] ?? f], [fragments[1] ?? f]])
      assert.deepEqual(
        calls.map(({ name, arguments: args }) => [name, args]),
        [
          ['f', '{}'],
          ['f', '{}'],
        ],
      )
      assert.match(calls[0]?.id ?? '', /^call_[0-9a-f-]{36}$/)
      assert.notEqual(calls[0]?.id, calls[1]?.id)
      const deltas = chunks.flatMap(chunk => (chunk.type === 'tool-call-delta' ? [chunk.id] : []))
      assert.deepEqual(new Set(deltas), new Set(calls.map(call => call.id)))
    })
  }
}

test('different calls stay apart though the host gives two calls one id', async t => {
  const { calls } = await callsOf(t, [[{ index: 0, id: 'x', ...f }], [{ index: 1, id: 'x', ...f }]])
  assert.equal(calls.length, 2)
  assert.equal(calls[0]?.id, 'x')
  assert.notEqual(calls[1]?.id, 'x')
})

test('different calls stay apart from calls of earlier steps, though the host counts from the beginning each time', async t => {
  const source = { kind: 'model', provider: 'deepseek', model: 'deepseek-flash' } as const
  const call = { type: 'tool-call', id: CallId('call_0'), name: 'f', arguments: '{}' } as const
  const messages = [
    hello,
    createAssistantMessage({ content: [call], source }),
    createToolResultMessage({ callId: call.id, content: [{ type: 'text', text: 'ok' }] }),
  ]
  const { calls, notices } = await callsOf(t, [[{ index: 0, id: 'call_0', ...f }]], { messages })
  assert.notEqual(calls[0]?.id, 'call_0')
  assert.deepEqual(
    notices.map(notice => notice.text),
    ['id "call_0" of call "f" was used before'],
  )
})

test('different calls stay apart two hundred at once, in order', async t => {
  const { calls } = await callsOf(t, [
    Array.from({ length: 200 }, (_, at) => ({ index: at, id: `c${at}`, ...f })),
  ])
  assert.deepEqual(
    calls.map(call => call.id),
    Array.from({ length: 200 }, (_, at) => `c${at}`),
  )
})

test('the first fragment of a call is shown at once, before its arguments', async t => {
  const { chunks } = await callsOf(t, [
    [{ index: 0, id: 'a', name: 'f', args: '' }],
    [{ index: 0, args: '{}' }],
  ])
  assert.deepEqual(chunks.slice(0, 2), [
    { type: 'block-start', index: 0, blockType: 'tool-call' },
    { type: 'tool-call-delta', index: 0, id: 'a', name: 'f', argumentsDelta: '' },
  ])
})

test('calls end a text, and a finish reason of stop does not lose them', async t => {
  const provider = await startMockProvider({
    script: [
      reply.sse([
        { choices: [{ index: 0, delta: { content: 'Listing.' } }] },
        event([{ index: 0, id: 'a', name: 'bash', args: '{}' }], 'stop'),
      ]),
    ],
  })
  t.after(() => provider.close())
  const adapter = new OpenAIChatAdapter({ env: provider.env })
  const answer = await collectAnswer(adapter.stream({ provider: 'deepseek', model: 'm', messages: [hello] }))
  assert.equal(answer.text, 'Listing.')
  assert.deepEqual(answer.calls, [{ id: 'a', name: 'bash', arguments: '{}' }])
  assert.deepEqual(answer.finish, { kind: 'tool-calls' })
})

test('a call without a name keeps its arguments under a name that no tool has', async t => {
  const { calls } = await callsOf(t, [[{ index: 0, id: 'a', args: '{"q":1}' }]])
  assert.deepEqual(calls, one('{"q":1}', 'a', 'unnamed'))
})

test('a fragment with nothing in it is no call', async t => {
  const { calls, finish } = await callsOf(t, [[{ index: 0 }]], { finish: 'stop' })
  assert.deepEqual(calls, [])
  assert.equal(finish.kind, 'error')
})

test('the old form with one function_call is a call', async t => {
  const events = [
    { choices: [{ index: 0, delta: { function_call: { name: 'f', arguments: '{"q"' } } }] },
    {
      choices: [{ index: 0, delta: { function_call: { arguments: ':1}' } }, finish_reason: 'function_call' }],
    },
  ]
  const provider = await startMockProvider({ script: [reply.sse(events)] })
  t.after(() => provider.close())
  const adapter = new OpenAIChatAdapter({ env: provider.env })
  const { calls } = await collectAnswer(
    adapter.stream({ provider: 'deepseek', model: 'm', messages: [hello] }),
  )
  assert.deepEqual(
    calls.map(({ name, arguments: args }) => [name, args]),
    [['f', '{"q":1}']],
  )
})

test('prose and content that look like a call are not one', async t => {
  const text = '<tool_call>{"name":"bash","arguments":{"command":"rm -rf /"}}</tool_call>'
  const provider = await startMockProvider({ script: [reply.text(text)] })
  t.after(() => provider.close())
  const adapter = new OpenAIChatAdapter({ env: provider.env })
  const answer = await collectAnswer(adapter.stream({ provider: 'deepseek', model: 'm', messages: [hello] }))
  assert.deepEqual(answer.calls, [])
  assert.equal(answer.text, text)
})
