import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { CallId, MessageId, SessionId } from '@dsh/protocol'
import type { ContentBlock, ImageBlock, JsonValue, Message, ToolSchema } from '@dsh/protocol'
import {
  createAssistantMessage,
  createMessage,
  createToolResultMessage,
  createUserMessage,
} from '../../core/llm/index.ts'
import type { GenerateOptions } from '../../core/llm/index.ts'
import { checkChatRequest } from '../../testing/index.ts'
import { argumentsObject } from './arguments.ts'
import { OpenAIChatAdapter } from './index.ts'
import type { OpenAIChatConfig, WireNotice, WireRequest } from './index.ts'

interface WireMessage {
  role: string
  content: unknown
  reasoning_content?: string
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

const source = { kind: 'model', provider: 'deepseek', model: 'deepseek-flash' } as const
const text = (value: string): ContentBlock => ({ type: 'text', text: value })
const user = (value: string): Message =>
  createUserMessage({ content: [text(value)], source: { kind: 'user' } })
const assistant = (...content: ContentBlock[]): Message => createAssistantMessage({ content, source })
const call = (id: string, args = '{}', name = 'bash'): ContentBlock => ({
  type: 'tool-call',
  id: CallId(id),
  name,
  arguments: args,
})
const result = (id: string, value = 'ok'): Message =>
  createToolResultMessage({ callId: CallId(id), content: value === '' ? [] : [text(value)] })
const picture = (mediaType = 'image/png', sha256 = 'abc'): ImageBlock => ({
  type: 'image',
  attachment: { sha256, mediaType, bytes: 4 },
})

const png = Buffer.from('89504e470d0a1a0a0000', 'hex')

/** An adapter whose requests are caught before they leave. */
function setup(config: OpenAIChatConfig = {}): {
  send: (
    options: Partial<GenerateOptions>,
  ) => Promise<{ raw: string; body: Record<string, unknown>; messages: WireMessage[] }>
  notices: WireNotice[]
} {
  const notices: WireNotice[] = []
  let sent: WireRequest | undefined
  const adapter = new OpenAIChatAdapter(
    {
      env: { DEEPSEEK_API_KEY: 'sk-x', OPENAI_API_KEY: 'sk-x', OPENROUTER_API_KEY: 'sk-x' },
      transport: request => {
        sent = request
        return Promise.reject(new Error('caught'))
      },
      ...config,
    },
    notice => notices.push(notice),
  )
  return {
    notices,
    async send(options) {
      const request = { provider: 'deepseek', model: 'deepseek-flash', messages: [], ...options }
      await assert.rejects(async () => {
        for await (const chunk of adapter.stream(request)) assert.fail(JSON.stringify(chunk))
      }, /caught/)
      const raw = Buffer.concat(sent?.body ?? []).toString()
      const body = JSON.parse(raw) as Record<string, unknown>
      return { raw, body, messages: body['messages'] as WireMessage[] }
    },
  }
}

const codes = (notices: readonly WireNotice[]): string[] => notices.map(notice => notice.code)

test('a turn with thinking, calls and results goes out in the form of the wire', async () => {
  const { send, notices } = setup()
  const { messages, raw } = await send({
    system: 'Be brief.',
    messages: [
      user('List the files.'),
      assistant({ type: 'reasoning', text: 'ls will do' }, text('Listing.'), call('c1', '{"command":"ls"}')),
      result('c1', 'a.txt'),
      assistant({ type: 'reasoning', text: 'done' }, text('One file.')),
      user('Thanks.'),
    ],
  })
  assert.deepEqual(messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'List the files.' },
    {
      role: 'assistant',
      content: 'Listing.',
      reasoning_content: 'ls will do',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'a.txt' },
    { role: 'assistant', content: 'One file.' },
    { role: 'user', content: 'Thanks.' },
  ])
  assert.deepEqual(checkChatRequest(raw), [])
  assert.deepEqual(notices, [])
})

describe('arguments of old calls go out as a JSON object', () => {
  const cases: readonly (readonly [given: string, sent: string])[] = [
    ['{"command": "ls"}', '{"command": "ls"}'],
    ['', '{}'],
    ['  \n', '{}'],
    ['{"command": "ls', '{}'],
    ['null', '{}'],
    ['[1]', '{}'],
    ['"str"', '{}'],
    ['{}{}', '{}'],
    ["{'a':1}", '{}'],
    ['{"a":1}trailing', '{}'],
    ['{"a":"line\nbreak"}', '{}'],
    ['{"a":"\\ud83d\\udc33"}', '{"a":"\\ud83d\\udc33"}'],
    ['{"a":"\\ud83d","b":[1.50,"\\ud83d\\udc33"]}', '{"a":"\ufffd","b":[1.5,"🐳"]}'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
  ]
  for (const [given, sent] of cases) {
    test(JSON.stringify(given), async () => {
      const { send } = setup()
      const { messages, raw } = await send({
        messages: [user('x'), assistant(call('c', given)), result('c')],
      })
      assert.equal(messages[1]?.tool_calls?.[0]?.function.arguments, sent)
      assert.deepEqual(checkChatRequest(raw), [])
    })
  }

  test('whatever was written, and a sound object stays as it was', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), given => {
        const { text: sent, changed } = argumentsObject(given)
        const value = JSON.parse(sent) as unknown
        assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value))
        if (!changed && given.trim() !== '') assert.equal(sent, given)
      }),
    )
  })

  test('nested a hundred thousand deep without harm', () => {
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    assert.equal(argumentsObject(deep).text, deep)
  })
})

describe('half a character in', () => {
  const half = 'cut \ud83d'
  const cases: Readonly<Record<string, Partial<GenerateOptions>>> = {
    'a message of the user': { messages: [user(half)] },
    'a tool result': { messages: [user('x'), assistant(call('c')), result('c', half)] },
    'an answer': { messages: [user('x'), assistant(text(half))] },
    thinking: { messages: [user('x'), assistant({ type: 'reasoning', text: half }, call('c')), result('c')] },
    'the system prompt': { system: half, messages: [user('x')] },
    'the id of a call': { messages: [user('x'), assistant(call('c\ud83d')), result('c\ud83d')] },
    'a description': {
      messages: [user('x')],
      tools: [{ name: 't', description: half, parameters: { type: 'object' } }],
    },
    'a schema': {
      messages: [user('x')],
      tools: [
        {
          name: 't',
          description: '',
          parameters: { type: 'object', properties: { a: { description: half } } },
        },
      ],
    },
  }
  for (const [where, options] of Object.entries(cases)) {
    test(`${where} goes out as U+FFFD, and is told`, async () => {
      const { send, notices } = setup()
      const { raw } = await send(options)
      assert.deepEqual(checkChatRequest(raw), [])
      assert.match(raw, /\ufffd|\\ufffd/)
      assert.equal(notices.length > 0, true)
    })
  }

  test('is counted and its message named, once', async () => {
    const { send, notices } = setup()
    const poisoned = { ...user('a \ud83d b \udc33 c 🐳'), id: MessageId('m7') }
    await send({ messages: [poisoned] })
    await send({ messages: [poisoned, user('next')] })
    assert.deepEqual(notices, [
      {
        code: 'LONE_SURROGATE',
        provider: 'deepseek',
        model: 'deepseek-flash',
        text: 'message m7 holds 2 half characters',
        messageId: 'm7',
        count: 2,
      },
    ])
  })
})

const roles = (messages: readonly WireMessage[]): string[] =>
  messages.map(
    message => `${message.role}${message.tool_call_id === undefined ? '' : ` ${message.tool_call_id}`}`,
  )

test('a call without a result gets one that says so', async () => {
  const { send, notices } = setup()
  const { messages, raw } = await send({
    messages: [user('x'), assistant(call('a'), call('b')), result('b'), user('go on')],
  })
  assert.deepEqual(roles(messages), ['user', 'assistant', 'tool b', 'tool a', 'user'])
  assert.equal(messages[3]?.content, 'No result of this call was recorded.')
  assert.deepEqual(codes(notices), ['MENDED_PAIRING'])
  assert.deepEqual(checkChatRequest(raw), [])
})

test('a result that stands after other messages moves up to its call', async () => {
  const { send } = setup()
  const { messages, raw } = await send({
    messages: [user('x'), assistant(call('a')), user('wait'), result('a', 'late')],
  })
  assert.deepEqual(roles(messages), ['user', 'assistant', 'tool a', 'user'])
  assert.equal(messages[2]?.content, 'late')
  assert.deepEqual(checkChatRequest(raw), [])
})

test('a result without a call becomes text of the user', async () => {
  const { send, notices } = setup()
  const { messages, raw } = await send({ messages: [result('gone', 'data'), user('x')] })
  assert.deepEqual(messages[0], {
    role: 'user',
    content: 'Result of a tool call that is no longer part of this conversation:\ndata',
  })
  assert.deepEqual(codes(notices), ['MENDED_PAIRING'])
  assert.deepEqual(checkChatRequest(raw), [])
})

test('a second result of one call falls away', async () => {
  const { send } = setup()
  const { messages, raw } = await send({
    messages: [user('x'), assistant(call('a')), result('a', '1'), result('a', '2')],
  })
  assert.deepEqual(roles(messages), ['user', 'assistant', 'tool a'])
  assert.equal(messages[2]?.content, '1')
  assert.deepEqual(checkChatRequest(raw), [])
})

test('two calls under one id keep one result each', async () => {
  const { send } = setup()
  const { messages, raw } = await send({
    messages: [user('x'), assistant(call('a'), call('a')), result('a', '1'), result('a', '2')],
  })
  assert.deepEqual(roles(messages), ['user', 'assistant', 'tool a', 'tool a_2'])
  assert.deepEqual(checkChatRequest(raw), [])
})

test('an empty id is replaced, in the call and in its result', async () => {
  const { send } = setup()
  const { messages, raw } = await send({ messages: [user('x'), assistant(call('')), result('', 'r')] })
  assert.equal(messages[2]?.tool_call_id, messages[1]?.tool_calls?.[0]?.id)
  assert.deepEqual(checkChatRequest(raw), [])
})

for (const [title, content] of Object.entries({
  nothing: [],
  'thinking alone': [{ type: 'reasoning', text: 'hm' } as const],
  'blank text': [text(' \n')],
})) {
  test(`an answer of ${title} is left out`, async () => {
    const { send, notices } = setup()
    const { messages, raw } = await send({ messages: [user('x'), assistant(...content), user('y')] })
    assert.deepEqual(roles(messages), ['user', 'user'])
    assert.deepEqual(codes(notices), ['EMPTY_MESSAGE'])
    assert.deepEqual(checkChatRequest(raw), [])
  })
}

test('an empty message of the user and an empty result say that they are', async () => {
  const { send } = setup()
  const { messages } = await send({ messages: [user(''), assistant(call('a')), result('a', '')] })
  assert.deepEqual([messages[0]?.content, messages[2]?.content], ['(empty message)', '(no output)'])
})

test('a name that no host takes is changed', async () => {
  const { send, notices } = setup()
  const { messages, raw } = await send({
    messages: [user('x'), assistant(call('a', '{}', 'functions.bash')), result('a')],
  })
  assert.equal(messages[1]?.tool_calls?.[0]?.function.name, 'functions_bash')
  assert.deepEqual(codes(notices), ['RENAMED_CALL'])
  assert.deepEqual(checkChatRequest(raw), [])
})

test('an id that is too long for the host is shortened the same way each time', async () => {
  const { send } = setup()
  const id = `call_${'x'.repeat(60)}`
  const history = [user('x'), assistant(call(id)), result(id)]
  const first = await send({ provider: 'openai', model: 'gpt-5', messages: history })
  const second = await send({ provider: 'openai', model: 'gpt-5', messages: [...history, user('y')] })
  const wire = first.messages[1]?.tool_calls?.[0]?.id ?? ''
  assert.ok(wire.length <= 40)
  assert.equal(first.messages[2]?.tool_call_id, wire)
  assert.equal(second.messages[2]?.tool_call_id, wire)
})

test('system messages go to the head when they lead, and as text of the user where they do not', async () => {
  const { send } = setup()
  const system = (value: string): Message =>
    createMessage({ role: 'system', content: [text(value)], source: { kind: 'plugin', plugin: 'x' } })
  const { messages } = await send({ system: 'one', messages: [system('two'), user('x'), system('late')] })
  assert.deepEqual(messages, [
    { role: 'system', content: 'one\n\ntwo' },
    { role: 'user', content: 'x' },
    { role: 'user', content: 'late' },
  ])
})

test('content of a kind this wire has no word for is named', async () => {
  const { send, notices } = setup()
  const odd = { type: 'hologram' } as unknown as ContentBlock
  const { messages } = await send({
    messages: [createUserMessage({ content: [text('see'), odd], source: { kind: 'user' } })],
  })
  assert.equal(messages[0]?.content, 'see\n[Content of type "hologram" cannot be shown to this model.]')
  assert.deepEqual(codes(notices), ['UNKNOWN_BLOCK'])
})

const seen = (block: ImageBlock): Message =>
  createUserMessage({ content: [text('look'), block], source: { kind: 'user' } })

test('pictures go out as data, typed by what the bytes are', async () => {
  const { send } = setup({ loadImage: () => Promise.resolve(png) })
  const { messages } = await send({ messages: [seen(picture('image/jpeg'))] })
  assert.deepEqual(messages[0]?.content, [
    { type: 'text', text: 'look' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
  ])
})

test('pictures of a tool result follow the results in a message of the user', async () => {
  const { send } = setup({ loadImage: () => Promise.resolve(png) })
  const shot = createToolResultMessage({ callId: CallId('a'), content: [text('shot'), picture()] })
  const { messages, raw } = await send({
    messages: [user('x'), assistant(call('a'), call('b')), shot, result('b')],
  })
  assert.deepEqual(
    messages.map(message => message.role),
    ['user', 'assistant', 'tool', 'tool', 'user'],
  )
  assert.equal(messages[2]?.content, 'shot\n[Image: it is in the next user message.]')
  assert.deepEqual(messages[4]?.content, [
    { type: 'text', text: 'Images from the tool results above:' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
  ])
  assert.deepEqual(checkChatRequest(raw), [])
})

const bad: readonly (readonly [title: string, load: OpenAIChatConfig['loadImage'], shown: string])[] = [
  [
    'whose bytes are gone',
    () => Promise.resolve(undefined),
    '[Image not shown: its data is missing (image/png).]',
  ],
  [
    'that cannot be read',
    () => Promise.reject(new Error('disk')),
    '[Image not shown: its data is missing (image/png).]',
  ],
  [
    'of no bytes',
    () => Promise.resolve(new Uint8Array()),
    '[Image not shown: its data is no PNG, JPEG, GIF or WebP (image/png).]',
  ],
  [
    'that are a web page',
    () => Promise.resolve(Buffer.from('<html>')),
    '[Image not shown: its data is no PNG, JPEG, GIF or WebP (image/png).]',
  ],
]
for (const [title, loadImage, shown] of bad) {
  test(`pictures ${title} are replaced by a text alone`, async () => {
    const { send, notices } = setup(loadImage === undefined ? {} : { loadImage })
    const { messages, raw } = await send({ messages: [seen(picture()), user('go on')] })
    assert.equal(messages[0]?.content, `look\n${shown}`)
    assert.deepEqual(codes(notices), ['BAD_IMAGE'])
    assert.deepEqual(checkChatRequest(raw), [])
  })
}

test('pictures are not sent to a model that reads text only', async () => {
  const { send } = setup({ loadImage: () => Promise.resolve(png) })
  const { messages } = await send({ model: 'deepseek-v4-pro', messages: [seen(picture())] })
  assert.equal(messages[0]?.content, 'look\n[Image not shown: this model reads text only (image/png).]')
})

test('pictures are loaded once, however many requests show them', async () => {
  let loads = 0
  const { send } = setup({ loadImage: () => Promise.resolve((loads++, png)) })
  const message = seen(picture())
  const first = await send({ messages: [message], sessionId: SessionId('s') })
  const second = await send({
    messages: [message, assistant(text('ok')), user('y')],
    sessionId: SessionId('s'),
  })
  assert.equal(loads, 1)
  assert.deepEqual(second.messages[0], first.messages[0])
})

describe('a broken tool degrades alone', () => {
  const sound: ToolSchema = {
    name: 'good',
    description: 'Works.',
    parameters: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
  }
  const tool = (parameters: unknown, name = 'bad'): ToolSchema => ({
    name,
    description: 'x',
    parameters: parameters as { [key: string]: JsonValue },
  })
  const cyclic: Record<string, unknown> = { type: 'object' }
  cyclic['self'] = cyclic
  const open = { type: 'object', properties: {} }
  const cases: readonly (readonly [title: string, tool: ToolSchema, sent: unknown])[] = [
    ['without a schema', tool(undefined), open],
    ['with a schema of another type', tool({ type: 'string' }), open],
    ['with a schema that is a list', tool([]), open],
    ['with a schema that holds itself', tool(cyclic), open],
    ['with a schema without a type', tool({ properties: {} }), { properties: {}, type: 'object' }],
    ['with properties that are no map', tool({ type: 'object', properties: 3 }), open],
    [
      'with one bad property',
      tool({ type: 'object', properties: { a: { type: 'string' }, b: 'text' } }),
      { type: 'object', properties: { a: { type: 'string' }, b: {} } },
    ],
    [
      'with required names that are none',
      tool({ type: 'object', required: 'a' }),
      { type: 'object', required: [] },
    ],
  ]
  for (const [title, bad, sent] of cases) {
    test(title, async () => {
      const { send, notices } = setup()
      const { body, raw } = await send({ messages: [user('x')], tools: [sound, bad] })
      const tools = body['tools'] as { function: { name: string; parameters: unknown } }[]
      assert.deepEqual(tools[0], { type: 'function', function: sound })
      assert.deepEqual(tools[1]?.function.parameters, sent)
      assert.deepEqual(checkChatRequest(raw), [])
      if (title !== 'with a schema without a type')
        assert.deepEqual(new Set(codes(notices)), new Set(['BAD_TOOL_SCHEMA']))
    })
  }

  test('a tool whose name no host takes, or is there twice, is left out and told', async () => {
    const { send, notices } = setup()
    const tools = [
      sound,
      tool({ type: 'object' }, 'a.b'),
      tool({ type: 'object' }, 'good'),
      tool({ type: 'object' }, ''),
    ]
    const { body } = await send({ messages: [user('x')], tools })
    assert.deepEqual(body['tools'], [{ type: 'function', function: sound }])
    assert.equal(notices.length, 3)
  })

  test('where no tool is left, none is sent', async () => {
    const { send } = setup()
    const { body } = await send({ messages: [user('x')], tools: [tool({ type: 'object' }, 'a.b')] })
    assert.equal('tools' in body, false)
  })
})

describe('what two requests share', () => {
  const blocks = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary' }).map(text),
      fc.string().map(value => ({ type: 'reasoning', text: value }) as const),
      fc
        .tuple(fc.constantFrom('a', 'b', 'c', ''), fc.constantFrom('{}', '{"a":1}', '{"', ''))
        .map(([id, args]) => call(id, args)),
    ),
    { maxLength: 4 },
  )
  const history = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary' }).map(user),
      blocks.map(content => assistant(...content)),
      fc.tuple(fc.constantFrom('a', 'b', 'c', ''), fc.string()).map(([id, value]) => result(id, value)),
    ),
    { maxLength: 20 },
  )

  test('any history at all makes a request that a strict host takes', async () => {
    const { send } = setup()
    await fc.assert(
      fc.asyncProperty(history, async messages => {
        const { raw } = await send({ system: 's', messages })
        assert.deepEqual(checkChatRequest(raw), [])
      }),
    )
  })

  test('is sent from the same bytes, and the body is as if it were encoded anew', async () => {
    await fc.assert(
      fc.asyncProperty(history, async messages => {
        const growing = setup()
        for (let count = 0; count <= messages.length; count++) {
          const part = { system: 's', messages: messages.slice(0, count) }
          const grown = await growing.send({ ...part, sessionId: SessionId('one') })
          const fresh = await setup().send(part)
          assert.equal(grown.raw, fresh.raw)
        }
      }),
      { numRuns: 30 },
    )
  })

  test('a history that is rewritten is not mixed with the one before', async () => {
    const { send } = setup()
    const sessionId = SessionId('one')
    const old = [user('1'), assistant(text('2')), user('3'), assistant(text('4')), user('5')]
    await send({ messages: old, sessionId })
    const compacted = [user('summary'), ...old.slice(3)]
    assert.deepEqual(
      (await send({ messages: compacted, sessionId })).messages.map(message => message.content),
      ['summary', '4', '5'],
    )
    assert.deepEqual(
      (await send({ messages: old.slice(0, 1), sessionId })).messages.map(message => message.content),
      ['1'],
    )
  })
})
