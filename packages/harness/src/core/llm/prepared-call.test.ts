import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerOf, bareLlm, says } from '../../testing/bare-llm.ts'
import { resolveRetryPolicy } from './index.ts'
import type { AdapterCall } from './index.ts'

const request = { provider: 'a', model: 'm', messages: [] } as const

const reasoning = {
  efforts: [
    { id: 'low', name: 'Low' },
    { id: 'high', name: 'High' },
  ],
  defaultEffort: 'low',
}

test('a prepared call has the defaults of its model filled in, and says which', async () => {
  const { llm } = await bareLlm()
  const info = {
    reasoning,
    defaultMaxTokens: 100,
    context: { contextWindow: 9 },
    inputModalities: ['text'] as const,
  }
  llm.registerAdapter(['a'], says('one', info))
  const prepared = await llm.prepareCall({ provider: 'a', model: 'm', temperature: 0.5, stop: ['x'] })
  const { stream: _stream, ...facts } = prepared
  assert.deepEqual(facts, {
    config: {
      provider: 'a',
      model: 'm',
      temperature: 0.5,
      stop: ['x'],
      reasoningEffort: 'low',
      maxTokens: 100,
    },
    adapterDefaults: { reasoningEffort: true, maxTokens: true },
    context: { provider: 'a', model: 'm', contextWindow: 9 },
    inputModalities: ['text'],
    retryPolicy: resolveRetryPolicy(),
  })
  assert.ok(
    Object.isFrozen(prepared) && Object.isFrozen(prepared.config) && Object.isFrozen(prepared.context),
  )
  const chosen = await llm.resolveCallConfig({
    provider: 'a',
    model: 'm',
    reasoningEffort: 'high',
    maxTokens: 5,
  })
  assert.deepEqual(chosen, {
    config: { provider: 'a', model: 'm', reasoningEffort: 'high', maxTokens: 5 },
    adapterDefaults: {},
  })
})

test('a prepared call refuses an effort that the model does not list, and never puts it right', async () => {
  const { llm } = await bareLlm()
  llm.registerAdapter(['a'], says('one', { reasoning }))
  llm.registerAdapter(['b'], says('two'))
  await assert.rejects(llm.prepareCall({ provider: 'a', model: 'm', reasoningEffort: 'max' }), {
    code: 'UNSUPPORTED_REASONING_EFFORT',
    message: 'a/m has no reasoning effort "max"; it takes low, high',
  })
  await assert.rejects(llm.prepareCall({ provider: 'b', model: 'm', reasoningEffort: 'low' }), {
    code: 'UNSUPPORTED_REASONING_EFFORT',
    message: 'b/m has no reasoning effort "low"; it takes none',
  })
})

test('a prepared call refuses a config that no log could hold', async () => {
  const { llm } = await bareLlm()
  llm.registerAdapter(['a'], says('one'))
  const bad = [{ model: '' }, { temperature: NaN }, { maxTokens: 0 }, { stop: [1] }, { reasoningEffort: 1 }]
  for (const field of bad) {
    const config = { provider: 'a', model: 'm', ...field } as unknown as { provider: string; model: string }
    await assert.rejects(llm.prepareCall(config), { code: 'INVALID_REQUEST' }, JSON.stringify(field))
  }
  await assert.rejects(llm.prepareCall({ provider: 'x', model: 'm' }), { code: 'NO_ADAPTER' })
})

test('a prepared call keeps the adapter and the policy of its moment, whatever replaces them', async () => {
  const { llm } = await bareLlm()
  const first = Object.assign(says('one'), { providerRetryPolicy: () => ({ maxRetries: 1 }) })
  const registration = llm.registerAdapter(['a'], first)
  const prepared = await llm.prepareCall({ provider: 'a', model: 'm' })
  registration()
  llm.registerAdapter(['a'], says('two'))
  assert.deepEqual(prepared.retryPolicy, resolveRetryPolicy({ maxRetries: 1 }))
  assert.equal(await answerOf(prepared.stream(request)), 'one')
  assert.equal(await answerOf((await llm.prepareCall({ provider: 'a', model: 'm' })).stream(request)), 'two')
})

test('a prepared call is sent once, and only as it was prepared', async () => {
  const { llm } = await bareLlm()
  const adapter = says('one')
  llm.registerAdapter(['a'], adapter)
  const drifted = [
    { model: 'n' },
    { temperature: 1 },
    { maxTokens: 1 },
    { stop: ['x'] },
    { reasoningEffort: 'x' },
  ]
  const prepared = await llm.prepareCall({ provider: 'a', model: 'm' })
  for (const change of drifted) {
    assert.throws(() => prepared.stream({ ...request, ...change }), { code: 'INVALID_PREPARED_CALL' })
  }
  assert.equal(await answerOf(prepared.stream(request)), 'one')
  assert.throws(() => prepared.stream(request), { code: 'INVALID_PREPARED_CALL' })
  assert.equal(adapter.requests.length, 1)
})

test('a prepared call whose request a listener changes is a failed request', async () => {
  const { ctx, llm } = await bareLlm()
  const adapter = says('one')
  llm.registerAdapter(['a'], adapter)
  ctx.on('llm/stream', (options, next) => {
    Object.assign(options, { model: 'n' })
    return next()
  })
  const prepared = await llm.prepareCall({ provider: 'a', model: 'm' })
  assert.equal(await answerOf(prepared.stream({ ...request })), 'INVALID_PREPARED_CALL')
  assert.equal(adapter.requests.length, 0)
})

test('a prepared call goes the way its adapter bound it to', async () => {
  const { llm } = await bareLlm()
  const bound: AdapterCall = {
    model: { provider: 'a', id: 'm', name: 'Bound' },
    stream: options => says('bound').stream(options),
  }
  llm.registerAdapter(['a'], Object.assign(says('one'), { prepareCall: () => Promise.resolve(bound) }))
  assert.equal((await llm.resolveModelInfo('a', 'm')).name, 'Bound')
  assert.equal(
    await answerOf((await llm.prepareCall({ provider: 'a', model: 'm' })).stream(request)),
    'bound',
  )
})

test('preparing rejects with the failure of the adapter in one form, and with the caller’s reason once aborted', async () => {
  const { llm } = await bareLlm()
  const thrown: unknown = { message: 'no catalog' }
  const failing = Object.assign(says('one'), { resolveModel: () => Promise.reject(thrown) })
  llm.registerAdapter(['a'], failing)
  await assert.rejects(llm.prepareCall({ provider: 'a', model: 'm' }), {
    name: 'LlmError',
    code: 'UNKNOWN',
    message: 'no catalog',
    cause: thrown,
  })
  const cause = { kind: 'user' }
  const gone = AbortSignal.abort(cause)
  await assert.rejects(llm.prepareCall({ provider: 'a', model: 'm' }, gone), error => error === cause)
  const late = new AbortController()
  const slow = Object.assign(says('two'), {
    resolveModel: () => {
      late.abort(cause)
      return Promise.reject(new Error('cut'))
    },
  })
  llm.registerAdapter(['b'], slow)
  await assert.rejects(llm.prepareCall({ provider: 'b', model: 'm' }, late.signal), error => error === cause)
})
