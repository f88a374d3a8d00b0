import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ContentBlock, FinishReason, JsonValue, LlmFailure, StreamChunk } from '@dsh/protocol'
import { Context, HarnessError } from '../../kernel/index.ts'
import { createScope } from '../scope/index.ts'
import { ScriptedAdapter, fail, text } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { isLoopRequest, LlmError, LlmRuntime, markLoopRequest } from './index.ts'
import type { GenerateOptions, LlmAdapter } from './index.ts'

const request: GenerateOptions = { provider: 'a', model: 'm', messages: [] }
const stopped: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }
const word: StreamChunk = { type: 'text-delta', index: 0, text: 'word' }

async function setup(...adapters: readonly LlmAdapter[]) {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  for (const [index, adapter] of adapters.entries())
    ctx.llm.registerAdapter(['abc'[index] as string], adapter)
  const errors: unknown[] = []
  ctx.on('internal/error', error => void errors.push(error))
  return { ctx, llm: ctx.llm, errors }
}

function scripted(...script: readonly ScriptEntry[]): ScriptedAdapter {
  return new ScriptedAdapter(script)
}

/** An adapter that is nothing but this function. */
function streaming(stream: (options: GenerateOptions) => unknown): LlmAdapter {
  return Object.assign(new ScriptedAdapter(), { stream }) as LlmAdapter
}

/** `chunks`, then what `end` gives for a read; closing runs `close`. */
function source(
  chunks: readonly StreamChunk[],
  end: () => Promise<unknown>,
  close: () => unknown = () => {},
) {
  const left = [...chunks]
  return streaming(() => ({
    [Symbol.asyncIterator]: () => ({
      async next() {
        const value = left.shift()
        return value === undefined ? await end() : { done: false, value }
      },
      async return() {
        await close()
        return { done: true, value: undefined }
      },
    }),
  }))
}

const noMore = (): Promise<unknown> => Promise.resolve({ done: true, value: undefined })

async function collect(stream: AsyncIterable<StreamChunk>): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

function failed(kind: 'error' | 'aborted', failure: LlmFailure): StreamChunk {
  return { type: 'finish', reason: { kind, failure } as FinishReason }
}

test('an answer reaches its caller chunk by chunk, each one frozen', async () => {
  const { llm } = await setup(scripted(text('hi')))
  const chunks = await collect(llm.stream(request))
  assert.deepEqual(chunks, text('hi'))
  for (const chunk of chunks) assert.ok(Object.isFrozen(chunk))
})

test('however an adapter fails, its caller sees one finish chunk and no exception', async () => {
  const limited = new LlmError({
    message: 'slow down',
    code: 'RATE_LIMIT',
    status: 429,
    providerRetryAfterMs: 5,
  })
  const other: unknown = { toString: () => 'odd' }
  const forms: readonly [string, LlmAdapter, LlmFailure][] = [
    [
      'told in the stream',
      scripted(fail('SERVER', { message: 'busy' })),
      { message: 'busy', code: 'SERVER' },
    ],
    [
      'thrown by the call',
      streaming(() => {
        throw limited
      }),
      limited.failure,
    ],
    ['a rejected read', source([], () => Promise.reject(limited)), limited.failure],
    [
      'a harness error',
      scripted(() => {
        throw new HarnessError('NO_DISK', 'full')
      }),
      { message: 'full', code: 'NO_DISK' },
    ],
    [
      'any error',
      scripted(() => {
        throw new TypeError('x is not a function')
      }),
      { message: 'x is not a function', code: 'UNKNOWN' },
    ],
    [
      'no error at all',
      scripted(() => {
        throw other
      }),
      { message: 'LLM adapter failed', code: 'UNKNOWN' },
    ],
    [
      'no stream',
      streaming(() => undefined),
      {
        message: 'the adapter gave no stream of chunks',
        code: 'INVALID_ADAPTER',
      },
    ],
    ['no model', Object.assign(scripted(), { resolveModel: () => Promise.reject(limited) }), limited.failure],
  ]
  for (const [form, adapter, failure] of forms) {
    const { llm, errors } = await setup(adapter)
    assert.deepEqual(await collect(llm.stream(request)), [failed('error', failure)], form)
    assert.deepEqual(errors, [], form)
  }
})

test('a failure in the middle keeps what came before', async () => {
  const { llm } = await setup(
    scripted(function* () {
      yield word
      throw new Error('cut')
    }),
  )
  assert.deepEqual(await collect(llm.stream(request)), [
    word,
    failed('error', { message: 'cut', code: 'UNKNOWN' }),
  ])
})

test('a request that no adapter serves fails as a request', async () => {
  const { llm } = await setup()
  assert.deepEqual(await collect(llm.stream(request)), [
    failed('error', { message: 'no adapter serves provider "a"; there are: none', code: 'NO_ADAPTER' }),
  ])
})

test('what an adapter throws once the caller aborted is an abort', async () => {
  const { llm } = await setup(scripted('hang'))
  const abort = new AbortController()
  const chunks: StreamChunk[] = []
  for await (const chunk of llm.stream({ ...request, signal: abort.signal })) {
    chunks.push(chunk)
    if (chunk.type === 'text-delta') abort.abort({ kind: 'user' })
  }
  assert.deepEqual(chunks.at(-1), failed('aborted', { message: 'the request was aborted', code: 'ABORTED' }))
  assert.equal(chunks.length, 3)
})

test('an adapter that calls its own failure an abort is believed', async () => {
  const { llm } = await setup(
    scripted(() => {
      throw new LlmError({ message: 'cut', code: 'ABORTED' })
    }),
  )
  assert.deepEqual(await collect(llm.stream(request)), [
    failed('aborted', { message: 'cut', code: 'ABORTED' }),
  ])
})

test('an adapter that ends without a word when aborted is an abort too', async () => {
  const abort = new AbortController()
  const { llm } = await setup(
    source([], () => {
      abort.abort(new Error('enough'))
      return noMore()
    }),
  )
  assert.deepEqual(await collect(llm.stream({ ...request, signal: abort.signal })), [
    failed('aborted', { message: 'the request was aborted', code: 'ABORTED' }),
  ])
})

test('a request that is aborted already never reaches the adapter', async () => {
  const adapter = scripted(text('x'))
  const { llm } = await setup(adapter)
  const chunks = await collect(llm.stream({ ...request, signal: AbortSignal.abort() }))
  assert.deepEqual(chunks, [failed('aborted', { message: 'the request was aborted', code: 'ABORTED' })])
  assert.equal(adapter.requests.length, 0)
})

test('what a listener throws is thrown, whether it throws at once or while it streams', async () => {
  const { ctx, llm } = await setup(scripted(text('x'), text('x')))
  const stop = ctx.on('llm/stream', async function* (_options, next) {
    yield* next()
    throw new Error('late')
  })
  await assert.rejects(collect(llm.stream(request)), /^Error: late$/)
  stop()
  ctx.on('llm/stream', () => {
    throw new Error('at once')
  })
  assert.throws(() => llm.stream(request), /^Error: at once$/)
})

test('a listener may answer instead of the adapter, and its chunks are checked like an adapter’s', async () => {
  const adapter = scripted()
  const { ctx, llm } = await setup(adapter)
  let mine: unknown = stopped
  let closed = 0
  ctx.on('llm/stream', async function* () {
    try {
      yield mine as StreamChunk
    } finally {
      closed++
    }
  })
  const [answer] = await collect(llm.stream(request))
  assert.deepEqual(answer, stopped)
  assert.ok(answer !== mine && Object.isFrozen(answer))
  mine = { type: 'text-delta', index: 0 }
  await assert.rejects(collect(llm.stream(request)), { code: 'MALFORMED_RESPONSE' })
  assert.deepEqual([adapter.requests.length, closed], [0, 2])
})

test('a listener may try again: each next is one request', async () => {
  const adapter = scripted(fail('SERVER'), text('x'))
  const { ctx, llm } = await setup(adapter)
  ctx.on('llm/stream', async function* (_options, next) {
    const first = await collect(next())
    yield* first.at(-1)?.type === 'finish' ? next() : first
  })
  assert.deepEqual(await collect(llm.stream(request)), text('x'))
  assert.equal(adapter.requests.length, 2)
})

test('a listener may send a request that is not the loop’s another way', async () => {
  const adapter = scripted(text('x'))
  const { ctx, llm } = await setup(scripted(), adapter)
  const loopRequest = markLoopRequest(Object.freeze({ ...request, provider: 'b' }))
  ctx.on('llm/stream', (options, next) => {
    if (!isLoopRequest(options)) Object.assign(options, { provider: 'b' })
    return next()
  })
  assert.deepEqual(await collect(llm.stream({ ...request })), text('x'))
  adapter.push(text('y'))
  assert.deepEqual(await collect(llm.stream(loopRequest)), text('y'))
})

test('a listener that belongs to one agent hears the requests of that agent alone', async () => {
  const { ctx, llm } = await setup(scripted(text('x'), text('x'), text('x')))
  const mine = createScope(ctx, {})
  const other = createScope(ctx, {})
  let heard = 0
  mine.ctx.on('llm/stream', (_options, next) => {
    heard++
    return next()
  })
  await collect(mine.ctx.llm.stream(request))
  assert.equal(heard, 1)
  await collect(other.ctx.llm.stream(request))
  await collect(llm.stream(request))
  assert.equal(heard, 1)
})

test('nothing that an adapter gives behind its finish reaches anyone, and it is closed there', async () => {
  let closed = false
  const { llm, errors } = await setup(
    streaming(async function* () {
      try {
        yield stopped
        yield word
      } finally {
        closed = true
      }
    }),
  )
  assert.deepEqual(await collect(llm.stream(request)), [stopped])
  assert.ok(closed)
  assert.deepEqual(errors, [])
})

test('a failure in letting go of a complete answer is reported and does not spoil it', async () => {
  const broken = new Error('socket')
  const { llm, errors } = await setup(source([stopped], noMore, () => Promise.reject(broken)))
  assert.deepEqual(await collect(llm.stream(request)), [stopped])
  assert.deepEqual(errors, [broken])
})

test('leaving early waits until the adapter has let go, and throws what it throws then', async () => {
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  const { llm } = await setup(
    streaming(async function* () {
      try {
        yield word
      } finally {
        steps.push('closing')
        await gate.promise
        steps.push('closed')
      }
    }),
    source([word], noMore, () => Promise.reject(new Error('stuck'))),
  )
  const leaving = (async () => {
    for await (const _chunk of llm.stream(request)) break
    steps.push('left')
  })()
  await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(steps, ['closing'])
  gate.resolve()
  await leaving
  assert.deepEqual(steps, ['closing', 'closed', 'left'])
  const stuck = async (): Promise<void> => {
    for await (const _chunk of llm.stream({ ...request, provider: 'b' })) return
  }
  await assert.rejects(stuck, /stuck/)
})

test('an adapter that failed by itself is not closed again', async () => {
  let closings = 0
  const { llm } = await setup(
    source(
      [],
      () => Promise.reject(new Error('cut')),
      () => closings++,
    ),
  )
  await collect(llm.stream(request))
  assert.equal(closings, 0)
})

test('a chunk that is none fails the request, names what is wrong, and closes the adapter', async () => {
  const bad: readonly [unknown, RegExp][] = [
    [undefined, /the stream gave undefined instead of a chunk/],
    [null, /gave null instead of a chunk/],
    [{ type: 'text' }, /unknown type "text"/],
    [{ type: 'text-delta', index: 0 }, /"text-delta" with text of type undefined/],
    [{ type: 'text-delta', index: -1, text: '' }, /text-delta chunk with index -1/],
    [{ type: 'text-delta', index: 0.5, text: '' }, /index 0.5/],
    [{ type: 'reasoning-delta', index: 0, text: 1 }, /"reasoning-delta" with text/],
    [{ type: 'block-start', index: 0 }, /"block-start" with blockType/],
    [{ type: 'tool-call-delta', index: 0, argumentsDelta: '' }, /"tool-call-delta" with id/],
    [
      { type: 'tool-call-delta', index: 0, id: '', argumentsDelta: {} },
      /"tool-call-delta" with argumentsDelta/,
    ],
    [{ type: 'block-end', index: 0 }, /a block-end chunk without a block/],
    [{ type: 'block-end', index: 0, block: {} }, /a block without a type/],
    [{ type: 'block-end', index: 0, block: { type: 'text' } }, /"text" with text/],
    [
      { type: 'block-end', index: 0, block: { type: 'tool-call', id: 'c', name: 'x', arguments: {} } },
      /"tool-call" with arguments of type object/,
    ],
    [
      { type: 'block-end', index: 0, block: { type: 'chart', draw: () => {} } },
      /a block that is not JSON: .*draw/,
    ],
    [{ type: 'usage' }, /a usage chunk without usage/],
    [{ type: 'usage', usage: { inputTokens: NaN, outputTokens: 1 } }, /inputTokens NaN/],
    [
      { type: 'usage', usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: -1 } },
      /cacheReadTokens -1/,
    ],
    [{ type: 'finish' }, /a finish chunk without a reason/],
    [{ type: 'finish', reason: {} }, /a finish reason without a kind/],
    [{ type: 'finish', reason: { kind: 'stop' }, replayState: 1 }, /a replayState that is a number/],
    [
      { type: 'finish', reason: { kind: 'stop' }, replayState: { blocks: 1 } },
      /replayState blocks that are no list/,
    ],
  ]
  for (const [value, message] of bad) {
    let closed = false
    const { llm } = await setup(
      streaming(async function* () {
        try {
          yield value
          yield stopped
        } finally {
          closed = true
        }
      }),
    )
    const [chunk, ...more] = await collect(llm.stream(request))
    assert.ok(chunk?.type === 'finish' && chunk.reason.kind === 'error', String(message))
    assert.equal(chunk.reason.failure.code, 'MALFORMED_RESPONSE')
    assert.match(chunk.reason.failure.message, message)
    assert.deepEqual([more, closed], [[], true])
  }
})

test('a chunk is a copy with the declared fields alone, each read once', async () => {
  let reads = 0
  const tricky = {
    type: 'text-delta',
    index: 0,
    extra: () => {},
    get text() {
      return `read ${++reads}`
    },
  }
  const { llm } = await setup(
    streaming(async function* () {
      yield tricky
      yield { ...stopped, more: undefined }
    }),
  )
  assert.deepEqual(await collect(llm.stream(request)), [
    { type: 'text-delta', index: 0, text: 'read 1' },
    stopped,
  ])
  assert.equal(reads, 1)
})

test('a chunk that throws when it is looked at fails the request like any other', async () => {
  const hostile = {
    get type(): string {
      throw new Error('trap')
    },
  }
  const { llm } = await setup(scripted([hostile as unknown as StreamChunk]))
  assert.deepEqual(await collect(llm.stream(request)), [
    failed('error', { message: 'trap', code: 'UNKNOWN' }),
  ])
})

test('a block of any depth passes', async () => {
  let rows: JsonValue = []
  for (let depth = 0; depth < 20_000; depth++) rows = [rows]
  const block = { type: 'chart', rows } as unknown as ContentBlock
  const { llm } = await setup(scripted([{ type: 'block-end', index: 0, block }, stopped]))
  const [chunk] = await collect(llm.stream(request))
  assert.equal(chunk?.type, 'block-end')
})

test('a failure told in the stream keeps its code where a detail of it is wrong', async () => {
  const told = (failure: unknown) =>
    scripted([{ type: 'finish', reason: { kind: 'error', failure } as FinishReason }])
  const cases: readonly [unknown, LlmFailure][] = [
    [
      { message: 'reset', code: 'TRANSPORT', status: 0, providerRetryAfterMs: -5, extra: 1 },
      { message: 'reset', code: 'TRANSPORT' },
    ],
    [
      { code: 'SERVER', status: 503, requestId: 'r' },
      { message: 'LLM adapter failed', code: 'SERVER', status: 503, requestId: 'r' },
    ],
    [{}, { message: 'LLM adapter failed', code: 'UNKNOWN' }],
    [undefined, { message: 'LLM adapter failed', code: 'UNKNOWN' }],
  ]
  for (const [failure, mended] of cases) {
    const { llm } = await setup(told(failure))
    assert.deepEqual(await collect(llm.stream(request)), [failed('error', mended)])
  }
})

test('chunks of plugins’ kinds pass whole', async () => {
  const chunks = [
    { type: 'block-start', index: 0, blockType: 'chart' },
    { type: 'block-end', index: 0, block: { type: 'chart', rows: [1, 2] } },
    {
      type: 'usage',
      usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 3, reasoningTokens: 1 },
    },
    {
      type: 'finish',
      reason: { kind: 'filtered', by: 'x' },
      replayState: { response: { id: 1 }, blocks: [null] },
    },
  ] as unknown as readonly StreamChunk[]
  const { llm } = await setup(scripted(chunks))
  assert.deepEqual(await collect(llm.stream(request)), chunks)
})
