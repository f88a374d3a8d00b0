import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { LlmFailure, SessionEvent, SessionEventMap } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { agentEvents } from '../../core/agent/index.ts'
import type { Agent, RequestErrorAction } from '../../core/agent/index.ts'
import { resolveRetryPolicy } from '../../core/llm/index.ts'
import type { RetryPolicy } from '../../core/llm/index.ts'
import { SessionStore } from '../../core/session/index.ts'
import { retry, retryChains } from './index.ts'

interface Failing {
  readonly policy?: RetryPolicy | undefined
  readonly step?: number
  readonly provider?: string
  readonly signal?: AbortSignal
  readonly facts?: Partial<LlmFailure>
}

const steady = resolveRetryPolicy({ initialDelayMs: 100, maxDelayMs: 1000, jitterRatio: 0 })
const always = resolveRetryPolicy({ mode: 'always', initialDelayMs: 100, maxDelayMs: 1000, jitterRatio: 0 })

/** The plugin with one agent in step 1.1, whose requests fail by `fail`; time stands still unless it is ticked. */
async function setup(t: TestContext) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  const plugin = ctx.plugin(retry)
  await plugin
  const session = ctx.sessions.create(SessionId('s'))
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  const agent = { session } as Agent
  const events = agentEvents(ctx, agent)
  const reported: unknown[] = []
  ctx.on('internal/error', error => void reported.push(error))
  let asked = 0
  const below = { answer: (): Promise<RequestErrorAction> => Promise.resolve(undefined) }
  const inner = (): Promise<RequestErrorAction> => {
    asked++
    return below.answer()
  }
  const fail = (code: string, failing: Failing = {}): Promise<RequestErrorAction> => {
    const { step = 1, provider = 'a', facts = {}, signal = new AbortController().signal } = failing
    const policy = 'policy' in failing ? failing.policy : steady
    const failure = { message: 'failed', code, ...facts }
    const retryPolicy = policy === undefined ? {} : { retryPolicy: policy }
    return events.waterfall(
      'agent/request-error',
      { turn: 1, step, provider, failure, ...retryPolicy, signal },
      inner,
    )
  }
  /** One failed request and the whole wait behind it. */
  const retried = async (code: string, failing?: Failing): Promise<RequestErrorAction> => {
    const action = fail(code, failing)
    await turn()
    mock.timers.tick(1_000_000)
    return await action
  }
  return {
    ctx,
    plugin,
    session,
    below,
    reported,
    fail,
    retried,
    asked: () => asked,
    logged: () => logged(session),
  }
}

function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

interface Logged {
  readonly events: readonly SessionEvent[]
}

function logged({ events }: Logged): readonly SessionEvent<'llm/retry' | 'llm/retry-started'>[] {
  return events.filter(event => event.type === 'llm/retry' || event.type === 'llm/retry-started')
}

function retries(session: Logged): readonly SessionEventMap['llm/retry'][] {
  return session.events.filter(event => event.type === 'llm/retry').map(event => event.data)
}

test('a transient failure is written down, waited for, and sent again', async t => {
  const { session, fail, asked, logged } = await setup(t)
  const facts = { status: 503, requestId: 'r' }
  const action = fail('SERVER', { facts })
  await turn()
  mock.timers.tick(99)
  await turn()
  assert.equal(logged().length, 1)
  mock.timers.tick(1)
  assert.deepEqual(await action, { kind: 'retry' })
  const [retry, started] = logged()
  const { retryId } = retry?.data ?? {}
  assert.deepEqual(retry?.data, {
    retryId,
    turn: 1,
    step: 1,
    provider: 'a',
    mode: 'normal',
    policyKey:
      '["normal",100,1000,0,5,["EMPTY_RESPONSE","RATE_LIMIT","SERVER","STREAM_CLOSED","TIMEOUT","TRANSPORT"]]',
    retry: 1,
    maxRetries: 5,
    delayMs: 100,
    failure: { message: 'failed', code: 'SERVER', ...facts },
  })
  assert.deepEqual(
    [started?.type, started?.data],
    ['llm/retry-started', { retryId, turn: 1, step: 1, retry: 1 }],
  )
  assert.deepEqual([retry?.ignorable, started?.ignorable], [true, true])
  assert.equal(session.length, 4)
  assert.equal(asked(), 0)
})

test('retries of a step count up under one id until the budget is used, then others decide', async t => {
  const { session, below, retried, asked } = await setup(t)
  for (let round = 1; round <= 5; round++) assert.deepEqual(await retried('SERVER'), { kind: 'retry' })
  below.answer = () => Promise.resolve(undefined)
  assert.equal(await retried('SERVER'), undefined)
  assert.equal(asked(), 1)
  const all = retries(session)
  assert.deepEqual(
    all.map(data => data.retry),
    [1, 2, 3, 4, 5],
  )
  assert.deepEqual(
    all.map(data => data.delayMs),
    [100, 200, 400, 800, 1000],
  )
  assert.equal(new Set(all.map(data => data.retryId)).size, 1)
})

test('each step, provider and policy has a budget of its own', async t => {
  const { session, retried } = await setup(t)
  const once = resolveRetryPolicy({ maxRetries: 1, jitterRatio: 0 })
  assert.ok(await retried('SERVER', { policy: once }))
  assert.equal(await retried('SERVER', { policy: once }), undefined)
  assert.ok(await retried('SERVER', { policy: once, provider: 'b' }))
  assert.ok(await retried('SERVER', { policy: steady }))
  session.append('step/end', { turn: 1, step: 1 })
  session.append('step/start', { turn: 1, step: 2 })
  assert.ok(await retried('SERVER', { policy: once, step: 2 }))
  const all = retries(session)
  assert.deepEqual(
    all.map(({ step, provider, retry }) => [step, provider, retry]),
    [
      [1, 'a', 1],
      [1, 'b', 1],
      [1, 'a', 1],
      [2, 'a', 1],
    ],
  )
  assert.equal(new Set(all.map(data => data.retryId)).size, 4)
})

test('the order of codes makes no other policy', async t => {
  const { retried } = await setup(t)
  const codes = (retryableCodes: readonly string[]): RetryPolicy =>
    resolveRetryPolicy({ maxRetries: 1, retryableCodes })
  assert.ok(await retried('A', { policy: codes(['A', 'B']) }))
  assert.equal(await retried('A', { policy: codes(['B', 'A']) }), undefined)
})

test('the budget follows from the log, so it outlives the plugin', async t => {
  const { ctx, plugin, session, retried } = await setup(t)
  const once = resolveRetryPolicy({ maxRetries: 1, jitterRatio: 0 })
  assert.ok(await retried('SERVER', { policy: once }))
  await plugin.dispose()
  await ctx.plugin(retry)
  assert.equal(await retried('SERVER', { policy: once }), undefined)
  assert.equal(session.fold(retryChains).size, 1)
})

test('what the policy does not list is left to others at once', async t => {
  const { session, below, fail, asked } = await setup(t)
  below.answer = () => Promise.resolve({ kind: 'retry' })
  for (const code of ['AUTH', 'QUOTA', 'CONTEXT_WINDOW_EXCEEDED', 'INVALID_REQUEST', 'UNKNOWN']) {
    assert.deepEqual(await fail(code), { kind: 'retry' }, code)
  }
  assert.equal(asked(), 5)
  assert.deepEqual(retries(session), [])
})

test('a request without a policy is somebody else’s', async t => {
  const { session, fail, asked } = await setup(t)
  assert.equal(await fail('SERVER', { policy: undefined }), undefined)
  assert.deepEqual([asked(), retries(session)], [1, []])
})

test('a wait that the provider names is kept to the millisecond, without jitter', async t => {
  t.mock.method(Math, 'random', () => 0.9)
  const { session, retried } = await setup(t)
  const jittery = resolveRetryPolicy({ initialDelayMs: 100, maxDelayMs: 2000, jitterRatio: 0.5 })
  assert.ok(await retried('RATE_LIMIT', { policy: jittery, facts: { providerRetryAfterMs: 2000 } }))
  assert.ok(await retried('RATE_LIMIT', { policy: jittery, facts: { providerRetryAfterMs: 1.5 } }))
  assert.ok(await retried('RATE_LIMIT', { policy: jittery }))
  assert.deepEqual(
    retries(session).map(data => data.delayMs),
    [2000, 2, 560],
  )
})

test('a wait of hours is no wait: the failure goes on with its time', async t => {
  const { session, fail, asked } = await setup(t)
  assert.equal(await fail('RATE_LIMIT', { facts: { providerRetryAfterMs: 11_180_000 } }), undefined)
  assert.deepEqual([asked(), retries(session)], [1, []])
})

test('a route that is tried for ever asks others first, and their retry wins', async t => {
  const { session, below, fail, asked } = await setup(t)
  below.answer = () => Promise.resolve({ kind: 'retry' })
  assert.deepEqual(await fail('CONTEXT_WINDOW_EXCEEDED', { policy: always }), { kind: 'retry' })
  assert.deepEqual([asked(), retries(session)], [1, []])
})

test('a route that is tried for ever has no budget, whatever the code or the named wait', async t => {
  const { session, retried, asked } = await setup(t)
  const facts = { providerRetryAfterMs: 11_180_000 }
  for (let round = 0; round < 12; round++) {
    assert.deepEqual(await retried('AUTH', { policy: always, facts }), { kind: 'retry' })
  }
  const last = retries(session).at(-1)
  assert.deepEqual([last?.retry, last?.delayMs, last?.mode, asked()], [12, 1000, 'always', 12])
  assert.ok(last !== undefined && !('maxRetries' in last))
})

test('a policy below that fails does not end a route that is tried for ever; it is reported', async t => {
  const { below, fail, retried, reported } = await setup(t)
  const broken = new Error('compaction')
  below.answer = () => Promise.reject(broken)
  assert.deepEqual(await retried('SERVER', { policy: always }), { kind: 'retry' })
  assert.deepEqual(reported, [broken])
  await assert.rejects(fail('AUTH'), error => error === broken)
})

test('a cancel ends the wait at once, without a second event and without a timer', async t => {
  const { session, fail, logged } = await setup(t)
  const abort = new AbortController()
  const action = fail('SERVER', { signal: abort.signal })
  await turn()
  abort.abort({ kind: 'user' })
  assert.equal(await action, undefined)
  mock.timers.tick(1_000_000)
  await turn()
  assert.deepEqual(
    logged().map(event => event.type),
    ['llm/retry'],
  )
  assert.equal(await fail('SERVER', { signal: abort.signal }), undefined)
  assert.equal(retries(session).length, 1)
})

test('a cancel while others are asked beats the retry', async t => {
  const { session, below, fail } = await setup(t)
  const abort = new AbortController()
  below.answer = () => {
    abort.abort()
    return Promise.resolve(undefined)
  }
  assert.equal(await fail('SERVER', { policy: always, signal: abort.signal }), undefined)
  assert.deepEqual(retries(session), [])
})

test('unloading ends the waits and waits for those who still ask others', async t => {
  const { plugin, below, fail, logged } = await setup(t)
  const gate = Promise.withResolvers<RequestErrorAction>()
  below.answer = () => gate.promise
  const waiting = fail('SERVER')
  const asking = fail('SERVER', { policy: always })
  await turn()
  let ended = false
  const unloading = plugin.dispose().then(() => void (ended = true))
  assert.equal(await waiting, undefined)
  await turn()
  assert.equal(ended, false)
  gate.resolve(undefined)
  assert.equal(await asking, undefined)
  await unloading
  mock.timers.tick(1_000_000)
  await turn()
  assert.deepEqual(
    logged().map(event => event.type),
    ['llm/retry'],
  )
  assert.equal(await fail('SERVER'), undefined)
})

test('a failure that comes while the plugin unloads is left to others', async t => {
  const { ctx, plugin, session, fail, asked } = await setup(t)
  ctx.on(
    'agent/request-error',
    async (_error, next) => {
      await plugin.dispose()
      return await next()
    },
    { prepend: true },
  )
  assert.equal(await fail('SERVER'), undefined)
  assert.deepEqual([asked(), retries(session)], [1, []])
})

test('a retry event that lacks a fact is refused, naming the plugin', async t => {
  const { session, retried } = await setup(t)
  await retried('SERVER')
  const good = retries(session)[0] as SessionEventMap['llm/retry']
  const bad = [
    { retryId: '' },
    { turn: 0 },
    { retry: 1.5 },
    { provider: 1 },
    { mode: 'often' },
    { maxRetries: 0 },
    { mode: 'always' },
    { delayMs: 0 },
    { failure: null },
    { failure: { message: 'x', code: '' } },
  ]
  for (const change of bad) {
    const data = { ...good, ...change } as SessionEventMap['llm/retry']
    assert.throws(() => session.append('llm/retry', data), /plugin "retry"/, JSON.stringify(change))
  }
  assert.throws(() => session.append('llm/retry-started', { ...good, step: 0 }), /plugin "retry"/)
  assert.equal(retries(session).length, 1)
})
