import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import type { Agent } from '../agent/index.ts'
import { lintLog } from '../invariants/index.ts'
import { offerTools } from '../prompt/index.ts'
import { defineTool } from '../tools/index.ts'

async function setup(...script: ScriptEntry[]) {
  const harness = await createHarness(script)
  const { ctx, adapter } = harness
  const add = (name: string, more: { readonly deferred?: true } = {}) =>
    ctx.tools.register(
      defineTool({
        name,
        description: `Does ${name}.`,
        parameters: {},
        execute: () => `${name} ran`,
        ...more,
      }),
    )
  add('read')
  add('zap')
  for (const name of ['web_fetch', 'task_list', 'lsp']) add(name, { deferred: true })
  const turn = async (agent: Agent, words: string): Promise<void> => {
    agent.followup(say(words))
    await agent.whenIdle()
    assert.deepEqual(lintLog(agent.session.events), [])
  }
  const sent = (): string[] =>
    adapter.requests.map(({ tools = [] }) => tools.map(({ name }) => name).join(' '))
  return { ctx, adapter, add, agent: harness.agent(), turn, sent }
}

const reasons = (agent: Agent): string[] =>
  agent.session.events.flatMap(event => (event.type === 'request/header' ? [event.data.reason] : []))

const offered = (agent: Agent): (readonly string[])[] =>
  agent.session.events.flatMap(event => (event.type === 'tools/offered' ? [event.data.names] : []))

test('a deferred tool is not part of a request that nobody asked it into', async () => {
  const { ctx, agent, turn, sent } = await setup(text('a'))
  await turn(agent, 'look at the lsp of this web fetch')
  assert.deepEqual(sent(), ['read zap'])
  assert.deepEqual(
    ctx.tools.deferred(agent).map(({ name }) => name),
    ['lsp', 'task_list', 'web_fetch'],
  )
  assert.ok(ctx.tools.get('web_fetch', agent) && ctx.tools.knownNames(agent).has('web_fetch'))
})

test('a deferred tool that a model calls unasked runs, and is offered from the next step on', async () => {
  const { agent, turn, sent } = await setup(toolCall('web_fetch', {}), text('a'), text('b'))
  await turn(agent, 'one')
  const [result] = agent.session.events.filter(event => event.type === 'tool/result')
  assert.match(JSON.stringify(result?.data.message.content), /web_fetch ran/)
  await turn(agent, 'two')
  assert.deepEqual(sent(), ['read zap', 'read zap web_fetch', 'read zap web_fetch'])
  assert.deepEqual(reasons(agent), ['initial', 'change'])
})

test('a tool that a person names is offered at once, a plain word only where it is written as code', async () => {
  const { agent, turn, sent } = await setup(text('a'), text('b'), text('c'))
  await turn(agent, 'use web_fetch, not my_web_fetch_2 or task_list-like things')
  await turn(agent, 'ask the `lsp` then')
  await turn(agent, 'and "task_list"?')
  assert.deepEqual(sent(), [
    'read web_fetch zap',
    'read web_fetch zap lsp',
    'read web_fetch zap lsp task_list',
  ])
  assert.deepEqual(offered(agent), [['web_fetch'], ['lsp'], ['task_list']])
})

test('what a plugin or a tool says names no tool', async () => {
  const { agent, turn, sent, ctx } = await setup(toolCall('echo', {}), text('a'))
  const message = say('call web_fetch')
  agent.inject({ ...message, source: { kind: 'plugin', plugin: 'x', form: 'instructions' } })
  const echo = { name: 'echo', description: '', parameters: {}, execute: () => 'call task_list' }
  ctx.tools.register(defineTool(echo))
  await turn(agent, 'go')
  assert.deepEqual(sent(), ['echo read zap', 'echo read zap'])
})

test('offered tools join behind the others in the order of joining, and are logged once', async () => {
  const { agent, turn, sent } = await setup(text('a'), text('b'), text('c'))
  await turn(agent, 'one')
  offerTools(agent.session, ['web_fetch', 'web_fetch'])
  await turn(agent, 'two')
  offerTools(agent.session, ['lsp', 'web_fetch'])
  await turn(agent, 'three')
  assert.deepEqual(sent(), ['read zap', 'read zap web_fetch', 'read zap web_fetch lsp'])
  assert.deepEqual(offered(agent), [['web_fetch'], ['lsp']])
  assert.deepEqual(reasons(agent), ['initial', 'change', 'change'])
})

test('a session that goes on elsewhere offers the same tools in the same order', async () => {
  const { ctx, agent, turn, sent } = await setup(text('a'), text('b'), text('c'))
  await turn(agent, 'use web_fetch')
  await turn(agent, 'use task_list')
  // Nothing was asked of the model since.
  offerTools(agent.session, ['lsp'])
  const seed = JSON.parse(JSON.stringify(agent.session.events)) as SessionEvent[]
  const agentOptions = { provider: 'mock', model: 'mock' }
  const { agent: next } = await ctx.agents.create({ sessionId: SessionId('again'), seed, agentOptions })
  await turn(next, 'go on')
  assert.equal(sent().at(-1), 'read web_fetch zap task_list lsp')
})

test('an offered tool that is gone leaves the request, and joins again when it is back', async () => {
  const { ctx, agent, turn, sent, add } = await setup(text('a'), text('b'), text('c'))
  const gone = add('run_late', { deferred: true })
  await turn(agent, 'use run_late and web_fetch')
  gone()
  await turn(agent, 'two')
  add('run_late', { deferred: true })
  await turn(agent, 'three')
  assert.deepEqual(sent(), [
    'read run_late web_fetch zap',
    'read web_fetch zap',
    'read web_fetch zap run_late',
  ])
  assert.ok(ctx.tools.get('run_late'))
})

test('a restriction takes a deferred tool away like any other', async () => {
  const { agent, turn, sent } = await setup(toolCall('web_fetch', {}), text('a'))
  agent.ctx.tools.restrict({ deny: ['web_fetch'] })
  await turn(agent, 'use web_fetch')
  assert.deepEqual(sent(), ['read zap', 'read zap'])
  const [result] = agent.session.events.filter(event => event.type === 'tool/result')
  assert.equal(result?.data.error?.code, 'UNKNOWN_TOOL')
})

test('the name of a deferred tool in a slightly different spelling is found', async () => {
  const { agent, turn } = await setup(toolCall('functions.WebFetch', {}), text('a'))
  await turn(agent, 'go')
  const [result] = agent.session.events.filter(event => event.type === 'tool/result')
  assert.match(JSON.stringify(result?.data.message.content), /did you mean \\"web_fetch\\"/)
})
