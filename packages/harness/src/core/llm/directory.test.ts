import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context } from '../../kernel/index.ts'
import { LlmRuntime } from './index.ts'

async function setup() {
  const ctx = new Context()
  await ctx.plugin(LlmRuntime)
  return { ctx, llm: ctx.llm }
}

test('a provider that could be set up is listed until its plugin goes', async () => {
  const { ctx, llm } = await setup()
  const entry = { id: 'a', name: 'A', environment: ['A_KEY'] }
  const plugin = ctx.plugin({
    name: 'directory',
    inject: ['llm'],
    apply: own => void own.llm.registerConfigurableProviders([entry]),
  })
  await plugin
  assert.deepEqual(llm.listConfigurableProviders(), [entry])
  assert.throws(() => llm.registerConfigurableProviders([{ id: 'b', name: 'B' }, entry]), {
    code: 'DUPLICATE_DIRECTORY',
  })
  await plugin.dispose()
  assert.deepEqual(llm.listConfigurableProviders(), [])
})

test('a provider that could be set up has an id and a name, and is data', async () => {
  const { llm } = await setup()
  const bad = [[{ id: 'a' }], [{ id: '', name: 'A' }], [null], 'a', [{ id: 'a', name: 'A', extra: () => {} }]]
  for (const entries of bad) {
    assert.throws(() => llm.registerConfigurableProviders(entries as never), { code: 'INVALID_DIRECTORY' })
  }
})

test('a provider can be asked for its models before it has a route', async () => {
  const { llm } = await setup()
  const model = { provider: 'a', id: 'm', name: 'M' }
  const stop = llm.registerModelDiscovery('a', settings =>
    Promise.resolve(settings['baseUrl'] === 'x' ? [model] : [model, model]),
  )
  assert.deepEqual(await llm.discoverModels('a', { baseUrl: 'x' }), [model])
  await assert.rejects(llm.discoverModels('a'), { code: 'INVALID_CATALOG' })
  assert.throws(() => llm.registerModelDiscovery('a', () => Promise.resolve([])), {
    code: 'DUPLICATE_DISCOVERY',
  })
  assert.throws(() => llm.registerModelDiscovery('', () => Promise.resolve([])), {
    code: 'INVALID_DISCOVERY',
  })
  stop()
  await assert.rejects(llm.discoverModels('a'), { code: 'NO_DISCOVERY' })
})
