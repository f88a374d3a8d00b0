import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { ContentBlock, ImageBlock, Message } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { ScriptedAdapter, text } from '../../plugins/llm-scripted/index.ts'
import type { ScriptedModelInfo } from '../../plugins/llm-scripted/index.ts'
import {
  createAssistantMessage,
  createToolResultMessage,
  createUserMessage,
  imagePlaceholder,
  LlmRuntime,
} from './index.ts'
import type { GenerateOptions, LlmAdapter } from './index.ts'

const picture: ImageBlock = {
  type: 'image',
  attachment: { sha256: 'ab', mediaType: 'image/png', bytes: 10, width: 640, height: 480 },
}
const placeholder: ContentBlock = {
  type: 'text',
  text: '[Image not shown: this model reads text only (image/png, 640×480 pixels).]',
}
const said: ContentBlock = { type: 'text', text: 'look' }
const showing = createUserMessage({ content: [said, picture], source: { kind: 'user' } })
const shown = createToolResultMessage({ callId: CallId('c'), content: [picture, said] })
const plain = createUserMessage({ content: [said], source: { kind: 'user' } })

function noted(provider: string): Message {
  return createAssistantMessage({
    content: [said],
    source: { kind: 'model', provider, model: 'old', replayState: { response: 'secret', blocks: [1] } },
  })
}

async function setup(routes: Record<string, LlmAdapter>) {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  for (const [provider, adapter] of Object.entries(routes)) ctx.llm.registerAdapter([provider], adapter)
  const { llm } = ctx
  const send = async (provider: string, messages: readonly Message[]): Promise<GenerateOptions> => {
    const options: GenerateOptions = Object.freeze({
      provider,
      model: 'm',
      messages: Object.freeze(messages),
    })
    for await (const _chunk of llm.stream(options));
    return options
  }
  return { ctx, llm, send }
}

function scripted(info: ScriptedModelInfo = {}): ScriptedAdapter {
  return new ScriptedAdapter([text('a'), text('b'), text('c')], info)
}

function sent(adapter: ScriptedAdapter, request = 0): readonly Message[] {
  return adapter.requests[request]?.messages ?? []
}

test('a model that reads text only gets a line of text for each picture, in tool results too', async () => {
  const adapter = scripted({ inputModalities: ['text'] })
  const { send } = await setup({ a: adapter })
  const options = await send('a', [showing, shown, plain])
  assert.deepEqual(
    sent(adapter).map(message => message.content),
    [[said, placeholder], [{ ...shown.content[0], content: [placeholder, said] }], [said]],
  )
  assert.deepEqual(
    sent(adapter).map(message => message.id),
    [showing.id, shown.id, plain.id],
  )
  assert.deepEqual(options.messages, [showing, shown, plain])
})

test('a changed message is the same object each time, an unchanged one stays itself', async () => {
  const adapter = scripted({ inputModalities: ['text'] })
  const { send } = await setup({ a: adapter })
  await send('a', [showing, plain])
  await send('a', [showing, plain])
  assert.equal(sent(adapter, 0)[0], sent(adapter, 1)[0])
  assert.equal(sent(adapter)[1], plain)
  assert.ok(Object.isFrozen(sent(adapter)[0]))
})

test('a model that sees pictures, or may see them, gets them', async () => {
  for (const info of [{ inputModalities: ['text', 'image'] }, {}] as const) {
    const adapter = scripted(info)
    const { send } = await setup({ a: adapter })
    await send('a', [showing])
    assert.equal(sent(adapter)[0], showing)
  }
})

test('the placeholder says what is known of the picture', () => {
  const { width: _width, ...attachment } = picture.attachment
  assert.equal(
    imagePlaceholder({ type: 'image', attachment }),
    '[Image not shown: this model reads text only (image/png).]',
  )
})

test('private notes reach the adapter that made them, on each of its routes', async () => {
  const adapter = scripted()
  const { send } = await setup({ a: adapter, b: adapter })
  const messages = [noted('a'), noted('b')]
  await send('b', messages)
  assert.deepEqual(sent(adapter), messages)
  assert.equal(sent(adapter)[0], messages[0])
})

test('private notes of another adapter, or of nobody here, are left out; the route stays', async () => {
  const adapter = scripted()
  const { send } = await setup({ a: scripted(), b: adapter })
  const messages = [noted('a'), noted('gone')]
  await send('b', messages)
  assert.deepEqual(
    sent(adapter).map(message => message.source),
    [
      { kind: 'model', provider: 'a', model: 'old' },
      { kind: 'model', provider: 'gone', model: 'old' },
    ],
  )
  assert.deepEqual(
    messages.map(message => message.source.kind === 'model' && message.source.replayState?.response),
    ['secret', 'secret'],
  )
})

test('who may read private notes is decided when the request goes out', async () => {
  const adapter = scripted()
  const other = scripted()
  const { llm, send } = await setup({ b: adapter })
  const registration = llm.registerAdapter(['a'], adapter)
  const message = noted('a')
  await send('b', [message])
  assert.equal(sent(adapter)[0], message)
  registration()
  llm.registerAdapter(['a'], other)
  await send('b', [message])
  assert.deepEqual(sent(adapter, 1)[0]?.source, { kind: 'model', provider: 'a', model: 'old' })
})

test('a request in which nothing changes reaches the adapter as the object it was prepared with', async () => {
  const adapter = scripted({ inputModalities: ['text'] })
  const { llm } = await setup({ a: adapter })
  const prepared = await llm.prepareCall({ provider: 'a', model: 'm' })
  const options: GenerateOptions = Object.freeze({ ...prepared.config, messages: [plain, noted('a')] })
  for await (const _chunk of prepared.stream(options));
  assert.equal(adapter.requests[0], options)
})

test('a hand-made request gets the defaults of its model', async () => {
  const adapter = scripted({
    defaultMaxTokens: 7,
    reasoning: { efforts: [{ id: 'low', name: 'Low' }], defaultEffort: 'low' },
  })
  const { send } = await setup({ a: adapter })
  await send('a', [plain])
  assert.deepEqual(adapter.requests[0], {
    provider: 'a',
    model: 'm',
    messages: [plain],
    maxTokens: 7,
    reasoningEffort: 'low',
  })
})
