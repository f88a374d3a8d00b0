import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EpochHeader, ToolSchema } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import { given, logOf } from '../../testing/given.ts'
import { canonicalHeader, foldRequestHeader, headerEquals } from './index.ts'

const config = { provider: 'p', model: 'm' }
const tool: ToolSchema = {
  name: 'read',
  description: 'Read.',
  parameters: { type: 'object', properties: {} },
}
const full: EpochHeader = {
  config: { ...config, temperature: 0, maxTokens: 5, stop: ['a', 'b'] },
  adapterDefaults: { maxTokens: true },
  system: 'Be brief.',
  tools: [tool],
}

test('what is empty is absent in the canonical header, and a canonical one is given back', () => {
  assert.deepEqual(canonicalHeader({ config, adapterDefaults: {}, system: '', tools: [] }), { config })
  assert.deepEqual(canonicalHeader({ config, system: 'x', tools: [] }), { config, system: 'x' })
  assert.equal(canonicalHeader(full), full)
})

test('headers are equal when they ask for the same request, whether they share parts or not', () => {
  assert.ok(headerEquals(full, JSON.parse(JSON.stringify(full)) as EpochHeader))
  assert.ok(headerEquals(adopt(full), adopt({ ...full })))
  assert.ok(headerEquals({ config, system: '', tools: [] }, { config }))
  const others: EpochHeader[] = [
    { ...full, config: { ...full.config, model: 'n' } },
    { ...full, config: { ...full.config, temperature: 1 } },
    { ...full, config: { ...full.config, stop: ['a'] } },
    { ...full, config: { ...full.config, stop: ['b', 'a'] } },
    { ...full, adapterDefaults: {} },
    { ...full, system: 'Be brief' },
    { ...full, tools: [tool, tool] },
    { ...full, tools: [{ ...tool, description: 'Reads.' }] },
    { ...full, tools: [{ ...tool, parameters: { properties: {}, type: 'object' } }] },
  ]
  for (const other of others) assert.ok(!headerEquals(full, other), JSON.stringify(other))
})

test('a tool that is changed in place is seen as another one', () => {
  const mutable = { ...tool, parameters: { ...tool.parameters } }
  const before: EpochHeader = { config, tools: [structuredClone(mutable)] }
  const now: EpochHeader = { config, tools: [mutable] }
  assert.ok(headerEquals(before, now))
  Object.assign(mutable.parameters, { type: 'null' })
  assert.ok(!headerEquals(before, now))
})

test('the header and the context of a session are those of the last events, frozen', () => {
  const { session } = given().when(() => {})
  assert.equal(session.requestHeader(), undefined)
  assert.equal(session.requestContext(), undefined)
  session.append('request/header', { header: { ...full, tools: [] }, reason: 'initial' })
  const { tools: _, ...rest } = full
  assert.deepEqual(session.requestHeader(), rest)
  assert.ok(Object.isFrozen(session.requestHeader()))
  session.append('request/context', { ...config, contextWindow: 10 })
  session.append('request/context', config)
  assert.deepEqual(session.requestContext(), config)
})

test('a header folds on from the one before the events', () => {
  const events = logOf(['turn/start', { turn: 1 }], ['request/header', { header: full, reason: 'change' }])
  assert.deepEqual(foldRequestHeader(events, { config }), full)
  assert.deepEqual(foldRequestHeader(events.slice(0, 1), { config }), { config })
  assert.equal(foldRequestHeader([]), undefined)
})
