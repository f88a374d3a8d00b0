import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UserMessage } from '@dsh/protocol'
import { text, toolCall } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { createUserMessage } from '../llm/index.ts'
import { defineTool } from '../tools/index.ts'

async function setup() {
  const harness = await createHarness()
  const { ctx, adapter } = harness
  ctx.tools.register(
    defineTool({ name: 'noop', description: 'Nothing.', parameters: {}, execute: () => 'ok' }),
  )
  const facts: Record<string, string> = { time: 'noon', place: 'here' }
  const undo = Object.keys(facts).map((name, order) =>
    ctx.systemPrompt.context({ name, order, text: () => facts[name] ?? '' }),
  )
  const agent = harness.agent()
  const turn = async (words: string, ...script: ScriptEntry[]): Promise<void> => {
    adapter.push(...(script.length === 0 ? [text('ok')] : script))
    agent.followup(say(words))
    await agent.whenIdle()
  }
  const snapshots = (): UserMessage[] =>
    agent.session.events.flatMap(event =>
      event.type === 'user/message' && event.data.source.kind === 'plugin' ? [event.data] : [],
    )
  return { ctx, agent, facts, undo, turn, snapshots }
}

test('the first step brings one snapshot of the runtime context, behind the prompt', async () => {
  const { agent, turn, snapshots } = await setup()
  await turn('one')
  assert.deepEqual(
    agent.session.messages.map(({ source }) => source.kind),
    ['user', 'plugin', 'model'],
  )
  const [snapshot] = snapshots()
  assert.deepEqual(snapshot?.content, [
    {
      type: 'text',
      text: 'Current runtime context. It supersedes all earlier runtime context.\n\nnoon\n\nhere',
    },
  ])
  assert.deepEqual(snapshot.source, {
    kind: 'plugin',
    plugin: '@dsh/system-prompt',
    form: 'snapshot',
    sections: [
      { name: 'time', text: 'noon' },
      { name: 'place', text: 'here' },
    ],
  })
})

test('it is made once for each step', async () => {
  const { ctx, turn } = await setup()
  let made = 0
  ctx.systemPrompt.context({ name: 'count', order: 9, text: () => (made++, 'counted') })
  await turn('one', toolCall('noop', {}), text('ok'))
  assert.equal(made, 2)
})

test('it is said again only when it changed, also between the steps of a turn', async () => {
  const { ctx, facts, turn, snapshots } = await setup()
  await turn('one')
  await turn('two', toolCall('noop', {}), text('ok'))
  assert.equal(snapshots().length, 1)
  ctx.once('tools/result', () => void (facts['time'] = 'evening'))
  await turn('three', toolCall('noop', {}), text('ok'))
  assert.equal(snapshots().length, 2)
  facts['place'] = ''
  await turn('four')
  assert.deepEqual(
    snapshots().map(
      ({ source }) =>
        source.kind === 'plugin' && source.form === 'snapshot' && source.sections.map(each => each.text),
    ),
    [['noon', 'here'], ['evening', 'here'], ['evening']],
  )
})

test('a snapshot of another plugin is no part of it', async () => {
  const { agent, turn, snapshots } = await setup()
  await turn('one')
  const sections = [{ name: 'branch', text: 'main' }]
  agent.inject(
    createUserMessage({
      content: [{ type: 'text', text: 'On main.' }],
      source: { kind: 'plugin', plugin: 'git', form: 'snapshot', sections },
    }),
  )
  await turn('two')
  await turn('three')
  assert.deepEqual(
    snapshots().map(({ source }) => source.kind === 'plugin' && source.plugin),
    ['@dsh/system-prompt', 'git'],
  )
})

test('its end is said once, and nothing is said where there never was any', async () => {
  const { undo, turn, snapshots } = await setup()
  await turn('one')
  for (const each of undo) each()
  await turn('two')
  await turn('three')
  assert.deepEqual(snapshots()[1]?.content, [
    { type: 'text', text: 'There is no runtime context any more. Disregard all earlier runtime context.' },
  ])
  assert.equal(snapshots().length, 2)
})

test('it is said again when a replacement took it from the history, also one made in pre-step', async () => {
  const { ctx, agent, turn, snapshots } = await setup()
  await turn('one')
  ctx.once('agent/pre-step', async (_payload, next) => {
    const [start = 0, end = 0] = [agent.session.surface.nodes.at(0), agent.session.surface.nodes.at(-1)]
    agent.session.append('user/message', say('summary'), {
      surfaceOp: { op: 'replace', start, end },
      sourceEventSeqs: [...agent.session.surface.nodes],
    })
    return next()
  })
  await turn('two')
  assert.equal(snapshots().length, 2)
  await turn('three')
  assert.equal(snapshots().length, 2)
})

test('a resumed session remembers what was said', async () => {
  const { ctx, agent, turn, snapshots } = await setup()
  await turn('one')
  const { agent: again } = await ctx.agents.create({
    seed: agent.session.events,
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  assert.equal(snapshots().length, 1)
  again.followup(say('two'))
  await again.whenIdle()
  const plugins = again.session.messages.filter(({ source }) => source.kind === 'plugin')
  assert.equal(plugins.length, 1)
})

test('a turn whose prompt was taken back says nothing', async () => {
  const { ctx, agent, snapshots } = await setup()
  ctx.once('agent/inbox/inserted', () => agent.inbox.clear())
  agent.followup(say('never mind'))
  await agent.whenIdle()
  assert.equal(snapshots().length, 0)
})
