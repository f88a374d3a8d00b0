import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { LlmAdapter, LlmRuntime } from './index.ts'
import type { GenerateOptions } from './index.ts'

const word = (text: string, index = 0): StreamChunk => ({ type: 'text-delta', index, text })
const thought = (text: string, index = 0): StreamChunk => ({ type: 'reasoning-delta', index, text })
const part = (argumentsDelta: string, id = '', name?: string): StreamChunk => ({
  type: 'tool-call-delta',
  index: 1,
  id: CallId(id),
  ...(name === undefined ? {} : { name }),
  argumentsDelta,
})
const stopped: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }

/** Gives what it is fed, and asks the runtime to join what comes within 40 ms. */
class FedAdapter extends LlmAdapter {
  override readonly coalesceMs = 40
  readonly #fed: StreamChunk[] = []
  #wake = Promise.withResolvers<void>()
  failure: Error | undefined
  closed = false

  feed(...chunks: readonly StreamChunk[]): void {
    this.#fed.push(...chunks)
    this.wake()
  }

  wake(): void {
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  override async *stream(options: GenerateOptions): AsyncIterable<StreamChunk> {
    options.signal?.addEventListener('abort', () => this.wake())
    try {
      for (;;) {
        while (this.#fed.length > 0) yield this.#fed.shift() as StreamChunk
        if (this.failure !== undefined) throw this.failure
        await this.#wake.promise
        options.signal?.throwIfAborted()
      }
    } finally {
      this.closed = true
    }
  }
}

async function open(t: TestContext, signal?: AbortSignal) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  const adapter = new FedAdapter()
  ctx.llm.registerAdapter(['a'], adapter)
  const options = { provider: 'a', model: 'm', messages: [], ...(signal === undefined ? {} : { signal }) }
  return { adapter, stream: ctx.llm.stream(options) }
}

/** A consumer that always waits for the next chunk; `take` gives what it saw since the last time. */
async function setup(t: TestContext, signal?: AbortSignal) {
  const { adapter, stream } = await open(t, signal)
  const seen: StreamChunk[] = []
  const done = (async () => {
    for await (const chunk of stream) seen.push(chunk)
  })()
  const feed = async (...chunks: readonly StreamChunk[]): Promise<void> => {
    adapter.feed(...chunks)
    await turn()
  }
  const pass = async (ms: number): Promise<void> => {
    mock.timers.tick(ms)
    await turn()
  }
  const take = (): readonly StreamChunk[] => seen.splice(0)
  await turn()
  return { adapter, done, feed, pass, take }
}

async function turn(): Promise<void> {
  for (let round = 0; round < 3; round++) await new Promise(resolve => setImmediate(resolve))
}

test('the first delta of a block is not held back, those that follow soon go out as one', async t => {
  const { feed, pass, take, done } = await setup(t)
  await feed({ type: 'block-start', index: 0, blockType: 'text' }, word('a'), word('b'), word('c'))
  assert.deepEqual(take(), [{ type: 'block-start', index: 0, blockType: 'text' }, word('a')])
  await pass(39)
  assert.deepEqual(take(), [])
  await feed(word('d'))
  await pass(1)
  assert.deepEqual(take(), [word('bcd')])
  await feed(word('e'))
  assert.deepEqual(take(), [])
  await pass(40)
  assert.deepEqual(take(), [word('e')])
  await pass(1000)
  await feed(word('f'), stopped)
  await done
  assert.deepEqual(take(), [word('f'), stopped])
})

test('what is held goes out before anything of another kind or block', async t => {
  const { feed, take, done } = await setup(t)
  await feed(word('a'), word('b'), word('x', 2), word('y', 2), {
    type: 'block-end',
    index: 2,
    block: { type: 'text', text: 'xy' },
  })
  assert.deepEqual(take(), [
    word('a'),
    word('b'),
    word('x', 2),
    word('y', 2),
    { type: 'block-end', index: 2, block: { type: 'text', text: 'xy' } },
  ])
  await feed(thought('t'), thought('u'), stopped)
  await done
  assert.deepEqual(take(), [thought('t'), thought('u'), stopped])
})

test('deltas of a call keep the first id and name', async t => {
  const { feed, pass, take } = await setup(t)
  await feed(part('', 'c', 'read'), part('{"a'), part('":', 'c', 'read'), part('1}'))
  await pass(40)
  assert.deepEqual(take(), [part('', 'c', 'read'), part('{"a":1}', 'c', 'read')])
})

test('a failure comes behind what was held', async t => {
  const { adapter, feed, take, done } = await setup(t)
  adapter.failure = new Error('cut')
  await feed(word('a'), word('b'))
  await done
  assert.deepEqual(take(), [
    word('a'),
    word('b'),
    { type: 'finish', reason: { kind: 'error', failure: { message: 'cut', code: 'UNKNOWN' } } },
  ])
})

test('a chunk that is none closes the adapter', async t => {
  const { adapter, feed, take, done } = await setup(t)
  await feed(word('a'), { type: 'odd' } as unknown as StreamChunk)
  await done
  assert.equal(take().length, 2)
  assert.ok(adapter.closed)
})

test('an abort of the caller ends a stream that is waiting', async t => {
  const caller = new AbortController()
  const { adapter, feed, take, done } = await setup(t, caller.signal)
  await feed(word('a'), word('b'))
  caller.abort()
  await done
  assert.deepEqual(take().slice(0, 2), [word('a'), word('b')])
  assert.ok(adapter.closed)
})

test('leaving in the middle of a read ends that read and leaves no timer', async t => {
  const { adapter, stream } = await open(t)
  const leaving = (async () => {
    for await (const chunk of stream) {
      if (chunk.type === 'text-delta' && chunk.text === 'b') return
    }
  })()
  await turn()
  adapter.feed(word('a'), word('b'))
  await turn()
  mock.timers.tick(40)
  await leaving
  assert.ok(adapter.closed)
})

test('joined deltas are frozen', async t => {
  const { feed, pass, take } = await setup(t)
  await feed(word('a'), word('b'), word('c'))
  await pass(40)
  for (const chunk of take()) assert.ok(Object.isFrozen(chunk))
})
