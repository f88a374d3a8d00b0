import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bareLlm, says } from '../../testing/bare-llm.ts'
import type { LlmAdapter, LlmResolvedModelInfo } from './index.ts'

const listing = (models: unknown): LlmAdapter =>
  Object.assign(says('one'), { listModels: () => models as readonly LlmResolvedModelInfo[] })
const model = { provider: 'a', id: 'm', name: 'M' }

test('a catalog is checked and detached', async () => {
  const { llm } = await bareLlm()
  const given = { ...model, inputModalities: ['text'] as const, unknown: 1 }
  llm.registerAdapter(['a'], listing([given]))
  const [listed] = await llm.listModels('a')
  assert.deepEqual(listed, { ...model, inputModalities: ['text'] })
  assert.ok(Object.isFrozen(listed))
  assert.ok(!Object.isFrozen(given))
})

test('a catalog with a model twice is refused, and one of an unknown provider is not there', async () => {
  const { llm } = await bareLlm()
  llm.registerAdapter(['a'], listing([model, model]))
  llm.registerAdapter(['b'], listing('m'))
  llm.registerAdapter(['c'], { stream: () => {} } as unknown as LlmAdapter)
  await assert.rejects(llm.listModels('a'), { code: 'INVALID_CATALOG' })
  await assert.rejects(llm.listModels('b'), { code: 'INVALID_CATALOG' })
  await assert.rejects(llm.listModels('x'), { code: 'NO_ADAPTER', message: /"x"; there are: a, b, c/ })
  assert.deepEqual(await llm.listModels('c'), [])
})

test('what an adapter says of a model must fit the route and itself', async () => {
  const efforts = [{ id: 'low', name: 'Low' }]
  const bad: readonly [Partial<Record<keyof LlmResolvedModelInfo, unknown>>, string][] = [
    [{ provider: 'b' }, 'INVALID_MODEL_INFO'],
    [{ id: 'n' }, 'INVALID_MODEL_INFO'],
    [{ name: '' }, 'INVALID_MODEL_INFO'],
    [{ description: 1 }, 'INVALID_MODEL_INFO'],
    [{ inputModalities: ['video'] }, 'INVALID_MODEL_INFO'],
    [{ context: { contextWindow: 0 } }, 'INVALID_MODEL_CONTEXT'],
    [{ context: {} }, 'INVALID_MODEL_CONTEXT'],
    [{ defaultMaxTokens: 1.5 }, 'INVALID_MODEL_MAX_TOKENS'],
    [{ reasoning: { efforts: [] } }, 'INVALID_MODEL_REASONING'],
    [{ reasoning: { efforts: [{ id: 'low' }] } }, 'INVALID_MODEL_REASONING'],
    [{ reasoning: { efforts: [...efforts, ...efforts] } }, 'INVALID_MODEL_REASONING'],
    [{ reasoning: { efforts, defaultEffort: 'high' } }, 'INVALID_MODEL_REASONING'],
  ]
  for (const [info, code] of bad) {
    const { llm } = await bareLlm()
    const resolveModel = () =>
      Promise.resolve({ provider: 'a', id: 'm', name: 'M', ...info } as LlmResolvedModelInfo)
    llm.registerAdapter(['a'], Object.assign(says('one'), { resolveModel }))
    await assert.rejects(llm.resolveModelInfo('a', 'm'), { code }, JSON.stringify(info))
  }
})

test('an adapter that has nothing but a stream knows its models by name', async () => {
  const { llm } = await bareLlm()
  llm.registerAdapter(['a'], {
    stream: says('bare').stream,
    asked: [],
    name: 'bare',
  } as unknown as LlmAdapter)
  assert.deepEqual(await llm.resolveModelInfo('a', 'm'), { provider: 'a', id: 'm', name: 'm' })
})
