import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StreamChunk } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { BlockAssembler, LlmRuntime } from '../../core/llm/index.ts'
import type { GenerateOptions } from '../../core/llm/index.ts'
import { fail, llmScripted, ScriptedAdapter, text, toolCall, toolCalls } from './index.ts'
import type { ScriptedConfig } from './index.ts'

const request: GenerateOptions = { provider: 'scripted', model: 'm', messages: [] }

async function setup(config?: ScriptedConfig) {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  const plugin = ctx.plugin(llmScripted, config)
  await plugin
  const ask = async (options: GenerateOptions = request): Promise<BlockAssembler> => {
    const answer = new BlockAssembler()
    for await (const chunk of ctx.llm.stream(options)) answer.push(chunk)
    return answer
  }
  return { ctx, plugin, ask }
}

test('a text is a delta for each character, never half of one', () => {
  assert.deepEqual(text('h🙂'), [
    { type: 'block-start', index: 0, blockType: 'text' },
    { type: 'text-delta', index: 0, text: 'h' },
    { type: 'text-delta', index: 0, text: '🙂' },
    { type: 'block-end', index: 0, block: { type: 'text', text: 'h🙂' } },
    { type: 'usage', usage: { inputTokens: 1, outputTokens: 2 } },
    { type: 'finish', reason: { kind: 'stop' } },
  ])
})

test('a call streams its name, then its arguments, then itself', () => {
  assert.deepEqual(toolCall('read', { path: 'a' }, 'c1'), [
    { type: 'block-start', index: 0, blockType: 'tool-call' },
    { type: 'tool-call-delta', index: 0, id: 'c1', name: 'read', argumentsDelta: '' },
    { type: 'tool-call-delta', index: 0, id: 'c1', argumentsDelta: '{"path":"a"}' },
    {
      type: 'block-end',
      index: 0,
      block: { type: 'tool-call', id: 'c1', name: 'read', arguments: '{"path":"a"}' },
    },
    { type: 'usage', usage: { inputTokens: 1, outputTokens: 1 } },
    { type: 'finish', reason: { kind: 'tool-calls' } },
  ])
})

test('several calls are blocks of one answer, with ids of their own', async () => {
  const { ask } = await setup({
    script: [
      toolCalls([
        { name: 'a', args: {} },
        { name: 'b', args: '{broken' },
      ]),
    ],
  })
  const calls = (await ask()).blocks().map(block => (block.type === 'tool-call' ? block : undefined))
  assert.deepEqual(
    calls.map(call => [call?.name, call?.arguments]),
    [
      ['a', '{}'],
      ['b', '{broken'],
    ],
  )
  assert.equal(new Set(calls.map(call => call?.id)).size, 2)
})

test('a failure is told with its facts', async () => {
  const { ask } = await setup({
    script: [fail('RATE_LIMIT', { status: 429 }), fail('SERVER', { message: 'busy' })],
  })
  const first = await ask()
  assert.deepEqual(first.finish, {
    kind: 'error',
    failure: { message: 'scripted failure RATE_LIMIT', code: 'RATE_LIMIT', status: 429 },
  })
  assert.deepEqual((await ask()).finish, { kind: 'error', failure: { message: 'busy', code: 'SERVER' } })
})

test('a script is used up entry by entry, and can be gone on with', async () => {
  const adapter = new ScriptedAdapter([text('a')])
  const { ask } = await setup({ adapter })
  assert.equal(adapter.remaining, 1)
  assert.deepEqual((await ask()).blocks(), [{ type: 'text', text: 'a' }])
  assert.deepEqual((await ask()).finish, {
    kind: 'error',
    failure: { message: 'the script has no answer to request 2', code: 'SCRIPT_EXHAUSTED' },
  })
  adapter.push(text('b'), text('c'))
  assert.deepEqual((await ask()).blocks(), [{ type: 'text', text: 'b' }])
  assert.equal(adapter.remaining, 1)
})

test('what the adapter was asked is kept, in order', async () => {
  const adapter = new ScriptedAdapter([text('a'), text('b')])
  const { ask } = await setup({ adapter })
  await ask({ ...request, system: 'one' })
  await ask({ ...request, system: 'two' })
  assert.deepEqual(
    adapter.requests.map(options => options.system),
    ['one', 'two'],
  )
})

test('an entry may work its answer out, at once or piece by piece', async () => {
  const { ask } = await setup({
    script: [
      options => text(`asked ${options.model}`),
      () => Promise.resolve(text('later')),
      async function* () {
        yield* text('streamed')
      },
      () => {
        throw new Error('broken')
      },
    ],
  })
  assert.deepEqual((await ask()).blocks(), [{ type: 'text', text: 'asked m' }])
  assert.deepEqual((await ask()).blocks(), [{ type: 'text', text: 'later' }])
  assert.deepEqual((await ask()).blocks(), [{ type: 'text', text: 'streamed' }])
  assert.deepEqual((await ask()).finish, { kind: 'error', failure: { message: 'broken', code: 'UNKNOWN' } })
})

test('a hanging model says one word and ends when it is aborted', async () => {
  const { ctx } = await setup({ script: ['hang'] })
  const abort = new AbortController()
  const chunks: StreamChunk[] = []
  for await (const chunk of ctx.llm.stream({ ...request, signal: abort.signal })) {
    chunks.push(chunk)
    if (chunk.type === 'text-delta') abort.abort()
  }
  assert.deepEqual(chunks, [
    { type: 'block-start', index: 0, blockType: 'text' },
    { type: 'text-delta', index: 0, text: 'partial' },
    {
      type: 'finish',
      reason: { kind: 'aborted', failure: { message: 'the request was aborted', code: 'ABORTED' } },
    },
  ])
})

test('an abort stops an answer between two chunks', async () => {
  const { ctx } = await setup({ script: [text('abcdef')] })
  const abort = new AbortController()
  const kinds: string[] = []
  for await (const chunk of ctx.llm.stream({ ...request, signal: abort.signal })) {
    kinds.push(chunk.type === 'finish' ? chunk.reason.kind : chunk.type)
    if (kinds.length === 2) abort.abort()
  }
  assert.deepEqual(kinds, ['block-start', 'text-delta', 'aborted'])
})

test('the model has the facts it is given', async () => {
  const adapter = new ScriptedAdapter([], {
    name: 'Big',
    context: { contextWindow: 5 },
    inputModalities: ['text'],
  })
  const { ctx } = await setup({ adapter })
  assert.deepEqual(await ctx.llm.resolveModelInfo('scripted', 'm'), {
    provider: 'scripted',
    id: 'm',
    name: 'Big',
    context: { contextWindow: 5 },
    inputModalities: ['text'],
  })
  assert.deepEqual(
    (await ctx.llm.listModels('scripted')).map(model => model.id),
    ['scripted'],
  )
})

test('a composition file can hold a script', async () => {
  const script = [
    { text: 'hi' },
    { toolCalls: [{ name: 'read', args: { path: 'a' }, id: 'c' }] },
    { fail: 'AUTH', facts: { status: 401 } },
    'hang',
  ]
  const { ctx, ask } = await setup({ provider: 'other', script } as ScriptedConfig)
  assert.deepEqual(ctx.llm.listProviders(), [{ id: 'other', name: 'other' }])
  const other = { ...request, provider: 'other' }
  assert.deepEqual((await ask(other)).blocks(), [{ type: 'text', text: 'hi' }])
  assert.deepEqual((await ask(other)).blocks(), [
    { type: 'tool-call', id: 'c', name: 'read', arguments: '{"path":"a"}' },
  ])
  assert.deepEqual((await ask(other)).finish, {
    kind: 'error',
    failure: { message: 'scripted failure AUTH', code: 'AUTH', status: 401 },
  })
})

test('a config that cannot be meant is refused', async () => {
  const bad: readonly [unknown, RegExp][] = [
    [{ provider: '' }, /provider/],
    [{ scripts: [] }, /scripts: is no setting/],
    [{ script: [{ texd: 'x' }] }, /script\.0/],
    [{ script: [], adapter: new ScriptedAdapter() }, /takes a script or an adapter, not both/],
    [{ adapter: {} }, /adapter: has no stream method/],
  ]
  for (const [config, message] of bad) {
    await assert.rejects(
      setup(config as ScriptedConfig),
      { code: 'INVALID_CONFIG', message },
      String(message),
    )
  }
})

test('the model goes with the plugin', async () => {
  const { ctx, plugin } = await setup()
  assert.deepEqual(ctx.llm.listProviders(), [{ id: 'scripted', name: 'scripted' }])
  await plugin.dispose()
  assert.deepEqual(ctx.llm.listProviders(), [])
})
