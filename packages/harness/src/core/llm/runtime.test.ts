import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerOf, bareLlm, says } from '../../testing/bare-llm.ts'
import { resolveRetryPolicy } from './index.ts'
import type { LlmAdapter, LlmProviderInfo, RetryPolicySettings } from './index.ts'

async function setup() {
  const { ctx, llm } = await bareLlm()
  let updates = 0
  ctx.on('llm/adapters-updated', () => {
    updates++
  })
  const providers = (): readonly string[] => llm.listProviders().map(provider => provider.id)
  return { ctx, llm, providers, updates: () => updates }
}

const request = { provider: 'a', model: 'm', messages: [] } as const

test('an adapter serves its providers until it is taken away', async () => {
  const { llm, providers, updates } = await setup()
  const registration = llm.registerAdapter(['a', 'b'], says('one'))
  assert.deepEqual([providers(), updates()], [['a', 'b'], 1])
  registration()
  assert.deepEqual([providers(), updates()], [[], 2])
  registration()
  assert.equal(updates(), 2)
})

test('an adapter goes with the plugin that registered it', async () => {
  const { ctx, providers } = await setup()
  const plugin = ctx.plugin({
    name: 'provider',
    inject: ['llm'],
    apply: own => void own.llm.registerAdapter(['a'], says('one')),
  })
  await plugin
  assert.deepEqual(providers(), ['a'])
  await plugin.dispose()
  assert.deepEqual(providers(), [])
})

test('of providers of which one is taken, none is served', async () => {
  const { llm, providers, updates } = await setup()
  llm.registerAdapter(['a'], says('one'))
  assert.throws(() => llm.registerAdapter(['b', 'a'], says('two')), { code: 'DUPLICATE_ADAPTER' })
  assert.throws(() => llm.registerAdapter(['b', 'b'], says('two')), { code: 'DUPLICATE_ADAPTER' })
  assert.deepEqual([providers(), updates()], [['a'], 1])
})

test('replacing the providers happens whole or not at all', async () => {
  const { llm, providers, updates } = await setup()
  llm.registerAdapter(['taken'], says('one'))
  const registration = llm.registerAdapter(['a', 'b'], says('two'))
  assert.throws(() => registration.replace(['c', 'taken']), { code: 'DUPLICATE_ADAPTER' })
  assert.throws(() => registration.replace(['c', '']), { code: 'INVALID_ADAPTER' })
  assert.deepEqual([providers(), updates()], [['taken', 'a', 'b'], 2])
  registration.replace(['b', 'c'])
  assert.deepEqual([providers(), updates()], [['taken', 'b', 'c'], 3])
  registration.replace([])
  assert.deepEqual([providers(), updates()], [['taken'], 4])
  registration()
  assert.throws(() => registration.replace(['d']), { code: 'REGISTRATION_DISPOSED' })
})

test('taking an adapter away leaves a later one of the same provider alone', async () => {
  const { llm, providers } = await setup()
  const first = llm.registerAdapter(['a'], says('one'))
  first.replace([])
  llm.registerAdapter(['a'], says('two'))
  first()
  assert.deepEqual(providers(), ['a'])
  assert.equal(await answerOf(llm.stream(request)), 'two')
})

test('providers named like object members are ordinary', async () => {
  const { llm, providers } = await setup()
  llm.registerAdapter(['__proto__', 'constructor'], says('one'))
  assert.deepEqual(providers(), ['__proto__', 'constructor'])
  assert.equal(llm.providerRetryPolicy('toString'), undefined)
})

test('what is no adapter is refused', async () => {
  const { llm, providers } = await setup()
  const refused = { code: 'INVALID_ADAPTER' }
  assert.throws(() => llm.registerAdapter(['a'], {} as LlmAdapter), refused)
  assert.throws(() => llm.registerAdapter(['a'], undefined as unknown as LlmAdapter), refused)
  assert.throws(() => llm.registerAdapter('a' as unknown as string[], says('one')), refused)
  assert.throws(() => llm.registerAdapter([''], says('one')), refused)
  assert.deepEqual(providers(), [])
})

test('an adapter names its providers itself, under their own ids', async () => {
  const { llm } = await setup()
  const named = (info: unknown): LlmAdapter =>
    Object.assign(says('one'), { providerInfo: () => info as LlmProviderInfo })
  llm.registerAdapter(['a'], named({ id: 'a', name: 'Provider A', secret: 'x' }))
  assert.deepEqual(llm.listProviders(), [{ id: 'a', name: 'Provider A' }])
  for (const info of [{ id: 'other', name: 'x' }, { id: 'b', name: '' }, null]) {
    if (info === null) continue
    assert.throws(() => llm.registerAdapter(['b'], named(info)), { code: 'INVALID_ADAPTER' })
  }
})

test('the retry policy of a route is resolved when it is registered', async () => {
  const { llm } = await setup()
  const retrying = (policy: unknown): LlmAdapter =>
    Object.assign(says('one'), { providerRetryPolicy: () => policy as RetryPolicySettings })
  llm.registerAdapter(['a'], retrying({ maxRetries: 1 }))
  llm.registerAdapter(['b'], retrying(undefined))
  assert.deepEqual(llm.providerRetryPolicy('a'), resolveRetryPolicy({ maxRetries: 1 }))
  assert.deepEqual(llm.providerRetryPolicy('b'), resolveRetryPolicy())
  assert.throws(() => llm.registerAdapter(['c'], retrying({ maxRetries: -1 })), {
    code: 'INVALID_ADAPTER',
    message: 'retry policy of provider "c": maxRetries -1 is not a whole number from 0',
  })
})
