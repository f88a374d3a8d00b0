import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { StreamChunk } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import type { MockProvider, MockReply } from '../../testing/index.ts'
import { OpenAIChatAdapter } from './index.ts'
import type { ProviderConfig } from './index.ts'

const messages = [createUserMessage({ content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } })]
const delta = (part: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: part, finish_reason: finish }],
})
const call = { index: 0, id: 'c', function: { name: 'bash', arguments: '{"comm' } }

interface Setup {
  readonly provider: MockProvider
  ask(signal?: AbortSignal): AsyncIterable<StreamChunk>
}

async function setup(
  t: TestContext,
  script: readonly MockReply[],
  config: ProviderConfig = {},
): Promise<Setup> {
  const provider = await startMockProvider({ script })
  const adapter = new OpenAIChatAdapter({ env: provider.env, providers: { deepseek: config } })
  t.after(async () => {
    adapter.close()
    await provider.close()
  })
  const ask = (signal?: AbortSignal): AsyncIterable<StreamChunk> =>
    adapter.stream({ provider: 'deepseek', model: 'm', messages, ...(signal && { signal }) })
  return { provider, ask }
}

/** Reads until `isThere`, aborts, and gives what is thrown. */
async function abortAfter(
  stream: AsyncIterable<StreamChunk>,
  { abort, isThere }: { abort: () => void; isThere: (chunk: StreamChunk) => boolean },
): Promise<unknown> {
  try {
    for await (const chunk of stream) if (isThere(chunk)) abort()
  } catch (error) {
    return error
  }
  return undefined
}

const silent = reply.sse([delta({ reasoning_content: 'hm' })], { done: false }).hold()
const places: Readonly<
  Record<string, readonly [answer: MockReply, isThere: (chunk: StreamChunk) => boolean]>
> = {
  'in thinking': [silent, chunk => chunk.type === 'reasoning-delta'],
  'in text': [
    reply.sse([delta({ content: 'partial' })], { done: false }).hold(),
    chunk => chunk.type === 'text-delta',
  ],
  'in the arguments of a call': [
    reply.sse([delta({ tool_calls: [call] })], { done: false }).hold(),
    chunk => chunk.type === 'tool-call-delta',
  ],
}
for (const [place, [answer, isThere]] of Object.entries(places)) {
  test(`an abort ends the request with exactly its reason, ${place}`, async t => {
    const { provider, ask } = await setup(t, [answer, reply.text('next')])
    const controller = new AbortController()
    const reason = new Error('stop it')
    const thrown = await abortAfter(ask(controller.signal), {
      abort: () => controller.abort(reason),
      isThere,
    })
    assert.equal(thrown, reason)
    await provider.requests[0]?.closed
    assert.equal((await collectAnswer(ask())).text, 'next')
  })
}

test('an abort ends the request with exactly its reason, before the head of the answer', async t => {
  const { provider, ask } = await setup(t, [reply.nothing('hold'), reply.text('next')])
  const controller = new AbortController()
  const collecting = collectAnswer(ask(controller.signal))
  const request = await provider.received(1)
  controller.abort('by hand')
  assert.equal((await collecting).thrown, 'by hand')
  await request.closed
  assert.equal((await collectAnswer(ask())).text, 'next')
})

test('an abort ends the request with exactly its reason, between the head and the first byte', async t => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
  let written = (): void => {}
  const isWritten = new Promise<void>(resolve => (written = resolve))
  const { provider, ask } = await setup(t, [reply.raw(head).hold(), reply.text('next')])
  const controller = new AbortController()
  const collecting = collectAnswer(ask(controller.signal))
  const request = await provider.received(1)
  setImmediate(written)
  await isWritten
  controller.abort(new Error('stop it'))
  assert.match(String((await collecting).thrown), /stop it/)
  await request.closed
  assert.equal((await collectAnswer(ask())).text, 'next')
})

test('an abort ends the request with exactly its reason, in the body of an error', async t => {
  const answer = reply.status(500, { body: 'half a story' }).cut({ bytes: 4, how: 'hold' })
  const { provider, ask } = await setup(t, [answer])
  const controller = new AbortController()
  const collecting = collectAnswer(ask(controller.signal))
  await provider.received(1)
  setTimeout(() => controller.abort('by hand'), 5)
  assert.equal((await collecting).thrown, 'by hand')
})

test('an abort ends the request with exactly its reason, while the connection is being made', async t => {
  const { adapter, connected, left } = await deafHost(t)
  const controller = new AbortController()
  const stream = adapter.stream({ provider: 'deaf', model: 'm', messages, signal: controller.signal })
  const collecting = collectAnswer(stream)
  await connected
  controller.abort('by hand')
  assert.equal((await collecting).thrown, 'by hand')
  await left
})

test('an abort ends the request with exactly its reason, before it began, and then nothing is sent', async t => {
  const { provider, ask } = await setup(t, [reply.text('never')])
  assert.equal((await collectAnswer(ask(AbortSignal.abort('early')))).thrown, 'early')
  assert.equal(provider.requests.length, 0)
})

test('an abort ends the request with exactly its reason, while the key is looked up', async () => {
  const controller = new AbortController()
  const adapter = new OpenAIChatAdapter({
    findKey: () => {
      controller.abort('by hand')
      return Promise.resolve('sk-x')
    },
  })
  const stream = adapter.stream({ provider: 'deepseek', model: 'm', messages, signal: controller.signal })
  assert.equal((await collectAnswer(stream)).thrown, 'by hand')
})

test('an abort ends the request with exactly its reason, with no reason of its own is an AbortError', async t => {
  const { ask } = await setup(t, [silent])
  const controller = new AbortController()
  const thrown = await abortAfter(ask(controller.signal), {
    abort: () => controller.abort(),
    isThere: chunk => chunk.type === 'reasoning-delta',
  })
  assert.equal((thrown as Error).name, 'AbortError')
  assert.equal(thrown, controller.signal.reason)
})

test('a consumer that leaves closes the connection', async t => {
  const { provider, ask } = await setup(t, [reply.sse([delta({ content: 'a' })], { done: false }).hold()])
  for await (const chunk of ask()) if (chunk.type === 'text-delta') break
  await provider.requests[0]?.closed
})

/** A clock that only the test moves. */
function stoppedClock(t: TestContext): (ms: number) => void {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return ms => t.mock.timers.tick(ms)
}

/** Lets time pass after each chunk that `isThere` picks, once the next one is waited for. */
async function* passing(
  stream: AsyncIterable<StreamChunk>,
  { isThere, pass }: { isThere: (chunk: StreamChunk) => boolean; pass: () => void },
): AsyncIterable<StreamChunk> {
  for await (const chunk of stream) {
    if (isThere(chunk)) setImmediate(pass)
    yield chunk
  }
}

test('silence before the head is a TIMEOUT that names the limit', async t => {
  const pass = stoppedClock(t)
  const { provider, ask } = await setup(t, [reply.nothing('hold')], { idleTimeoutMs: 30_000 })
  const collecting = collectAnswer(ask())
  await provider.received(1)
  pass(30_000)
  assert.deepEqual((await collecting).finish, {
    kind: 'error',
    failure: { code: 'TIMEOUT', message: 'the provider sent nothing for 30 s, the idle limit' },
  })
})

test('silence in the middle of thinking is a TIMEOUT, and what came before is shown', async t => {
  const pass = stoppedClock(t)
  const events = Array.from({ length: 20 }, (_, at) => delta({ reasoning_content: `${at} ` }))
  const { provider, ask } = await setup(t, [reply.sse(events, { done: false }).hold(), reply.text('again')], {
    idleTimeoutMs: 40_000,
  })
  const stream = passing(ask(), {
    isThere: chunk => chunk.type === 'reasoning-delta' && chunk.text.endsWith('19 '),
    pass: () => pass(40_000),
  })
  const answer = await collectAnswer(stream)
  assert.ok(answer.finish.kind === 'error')
  assert.equal(answer.finish.failure.code, 'TIMEOUT')
  assert.match(answer.reasoning, /^0 1 2 .*19 $/)
  await provider.requests[0]?.closed
  assert.equal((await collectAnswer(ask())).text, 'again')
  assert.equal(provider.requests[1]?.headers['authorization'], 'Bearer sk-mock')
})

test('silence is broken by whatever comes: a slow drip is no silence', async t => {
  const pass = stoppedClock(t)
  const drops = 'drop by drop'.split('')
  const gates = drops.map(() => Promise.withResolvers<void>())
  const events = [...drops.map(content => delta({ content })), delta({}, 'stop')]
  const drip = gates.reduce((answer, { promise }, at) => answer.gate(promise, at), reply.sse(events))
  const { provider, ask } = await setup(t, [drip], { idleTimeoutMs: 40_000 })
  let fallen = 0
  const drop = (): void => {
    pass(30_000)
    gates[fallen++]?.resolve()
  }
  const stream = passing(ask(), {
    isThere: ({ type }) => type === 'text-delta' && fallen < drops.length,
    pass: drop,
  })
  const collecting = collectAnswer(stream)
  await provider.received(1)
  drop()
  assert.equal((await collecting).text, 'drop by drop')
  assert.equal(fallen, drops.length)
})

/** A host that takes so long for each piece of its answer, by a clock that nobody else moves. */
function slowHost(
  t: TestContext,
  pieces: readonly (readonly [ms: number, bytes: string])[],
  config: ProviderConfig,
): AsyncIterable<StreamChunk> {
  const pass = stoppedClock(t)
  const rest = pieces.values()
  const adapter = new OpenAIChatAdapter({
    env: { DEEPSEEK_API_KEY: 'sk-x' },
    providers: { deepseek: config },
    transport: () =>
      Promise.resolve({
        status: 200,
        header: () => undefined,
        read: async () => {
          const { value } = rest.next()
          if (value === undefined) return undefined
          pass(value[0])
          await Promise.resolve()
          return Buffer.from(value[1])
        },
        discard: () => {},
        release: () => {},
      }),
  })
  return adapter.stream({ provider: 'deepseek', model: 'm', messages })
}

const dataOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const waiting = [
  ...Array.from({ length: 8 }, () => [100_000, ': keep-alive\n\n'] as const),
  [100_000, dataOf(delta({ content: 'at last' }))],
  [100_000, dataOf(delta({}, 'stop'))],
] as const

test('silence is broken by every byte, be it a part of an event', async t => {
  const bytes = (dataOf(delta({ content: 'a' })) + dataOf(delta({}, 'stop'))).split('')
  const pieces = bytes.map(byte => [100_000, byte] as const)
  assert.equal((await collectAnswer(slowHost(t, pieces, { idleTimeoutMs: 150_000 }))).text, 'a')
})

test('silence is broken by comments', async t => {
  assert.equal((await collectAnswer(slowHost(t, waiting, { idleTimeoutMs: 150_000 }))).text, 'at last')
})

test('silence is not broken by comments where the config says so', async t => {
  const config = { idleTimeoutMs: 150_000, quirks: { commentsResetIdle: false } }
  const { finish } = await collectAnswer(slowHost(t, waiting, config))
  assert.equal(finish.kind === 'error' && finish.failure.code, 'TIMEOUT')
})

test('silence of the consumer is not silence of the host', async t => {
  const pass = stoppedClock(t)
  const events = [delta({ content: 'a' }), delta({ reasoning_content: 'b' }), delta({}, 'stop')]
  const { promise, resolve } = Promise.withResolvers<void>()
  const { ask } = await setup(t, [reply.sse(events).gate(promise, 1)], { idleTimeoutMs: 30_000 })
  let texts = ''
  for await (const chunk of ask()) {
    if (chunk.type !== 'text-delta') continue
    texts += chunk.text
    pass(60_000)
    resolve()
  }
  assert.equal(texts, 'a')
})

test('silence for as long as the setting allows is no failure, however long the answer takes', async t => {
  const thoughts = Array.from({ length: 119 }, () => delta({ reasoning_content: '.' }))
  const pieces = [...thoughts, delta({}, 'stop')].map(event => [800_000, dataOf(event)] as const)
  assert.ok(pieces.length * 800_000 > 24 * 60 * 60 * 1000)
  const answer = await collectAnswer(slowHost(t, pieces, { idleTimeoutMs: 900_000 }))
  assert.deepEqual(answer.finish, { kind: 'stop' })
  assert.equal(answer.reasoning.length, 119)
})

test('a host that cannot be connected to in time is named', async t => {
  const pass = stoppedClock(t)
  const { adapter, port, connected } = await deafHost(t, { connectTimeoutMs: 20_000 })
  const collecting = collectAnswer(adapter.stream({ provider: 'deaf', model: 'm', messages }))
  await connected
  pass(20_000)
  assert.deepEqual((await collecting).finish, {
    kind: 'error',
    failure: {
      code: 'TRANSPORT',
      message: `127.0.0.1:${port} cannot be reached: no connection to 127.0.0.1:${port} within 20000 ms (CONNECT_TIMEOUT)`,
    },
  })
})

/** Takes connections and never answers the TLS handshake. */
async function deafHost(
  t: TestContext,
  config: ProviderConfig = {},
): Promise<{ adapter: OpenAIChatAdapter; port: number; connected: Promise<void>; left: Promise<void> }> {
  const server = createServer()
  const connection = once(server, 'connection') as Promise<[Socket]>
  const connected = connection.then(([socket]) => void socket.on('error', () => {}).resume())
  const left = connection.then(async ([socket]) => void (await once(socket, 'close')))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const adapter = new OpenAIChatAdapter({
    providers: { deaf: { baseURL: `https://127.0.0.1:${port}`, keyOptional: true, ...config } },
  })
  return { adapter, port, connected, left }
}

test('connections are used again for the next request', async t => {
  const { provider, ask } = await setup(t, [reply.text('one'), reply.text('two'), reply.text('three')])
  for (const text of ['one', 'two', 'three']) {
    assert.equal((await collectAnswer(ask())).text, text)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  assert.deepEqual(
    provider.requests.map(request => request.connection),
    [1, 1, 1],
  )
})
