import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textOf } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { lintLog } from '../../core/invariants/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import type { Approval } from '../../core/tools/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { text, toolCall, toolCalls } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { repeatToolGuard } from './index.ts'

type Config = Parameters<NonNullable<typeof repeatToolGuard.apply>>[1]

async function setup(script: readonly ScriptEntry[], config: Partial<Config> = {}) {
  const { ctx, adapter, agent: create } = await createHarness([...script, text('done')])
  const plugin = ctx.plugin(repeatToolGuard, config)
  const agent = create()
  const ran: string[] = []
  const add = (name: string, result: () => string = () => 'ok'): void => {
    ctx.tools.register(
      defineTool({
        name,
        description: '',
        parameters: { type: 'object', additionalProperties: true },
        execute: () => {
          ran.push(name)
          return result()
        },
      }),
    )
  }
  for (const name of ['a', 'b', 'c', 'd', 'task_output']) add(name)
  const turn = async (words = 'go'): Promise<void> => {
    agent.followup(say(words))
    await agent.whenIdle()
    assert.deepEqual(lintLog(agent.session.events), [])
  }
  const notices = (): string[] =>
    agent.session.events.flatMap(event => {
      if (event.type !== 'user/message') return []
      const { source, content } = event.data
      return source.kind === 'plugin' && source.plugin === 'repeat-tool-guard' ? [textOf(content)] : []
    })
  const end = (): string => {
    const event = agent.session.events.findLast(({ type }) => type === 'turn/end')
    if (event?.type !== 'turn/end') return 'none'
    const { reason } = event.data
    return reason.kind === 'aborted' && reason.reason.kind === 'hook' ? reason.reason.reason : reason.kind
  }
  const results = (): string[] =>
    agent.session.events.flatMap(event =>
      event.type === 'tool/result' ? [textOf(event.data.message.content[0].content)] : [],
    )
  return { ctx, plugin, adapter, agent, add, ran, turn, notices, end, results }
}

const times = (count: number, make: (index: number) => ScriptEntry): ScriptEntry[] =>
  Array.from({ length: count }, (_, index) => make(index))

const nudge =
  'You made the same call of a 3 times in a row. If that does not bring you further, try something else.'

test('the same call is noted at three, told in detail at five, and ends the turn at eight', async () => {
  const { turn, notices, end, ran, adapter } = await setup(times(50, () => toolCall('a', { x: 1 })))
  await turn()
  assert.deepEqual(notices(), [
    nudge,
    'You made the same call of a 5 times in a row:\n- a {"x":1}\nThe results were the same each time.\nStop and think about why. At 8 times the turn is ended.',
  ])
  assert.equal(end(), 'the model made the same call of a 8 times in a row')
  // The eighth was refused.
  assert.deepEqual([ran.length, adapter.requests.length], [7, 8])
})

test('two different calls in turns are a circle, and so are three and four', async () => {
  const names = ['a', 'b', 'c', 'd']
  for (const length of [2, 3, 4]) {
    const script = times(60, index => toolCall(names[index % length] ?? '', {}))
    const { turn, notices, end, ran } = await setup(script)
    await turn()
    const round = names.filter((_, index) => index < length).join(', ')
    assert.equal(
      notices()[0],
      `You make the same ${length} calls over and over, 3 times by now: ${round}. If that does not bring you further, try something else.`,
    )
    assert.equal(end(), `the model made the same calls over and over, 8 times: ${round}`)
    assert.equal(ran.length, length * 8 - 1)
  }
})

test('order of arguments, spaces and asides do not make another call', async () => {
  const variants: JsonValue[] = [
    { command: 'ls  -la', dir: 'x', description: 'List' },
    { dir: 'x', command: ' ls -la', description: 'List again' },
    { command: 'ls -la', dir: 'x', justification: 'please', timeoutMs: 5 },
  ]
  const { turn, notices } = await setup(variants.map(args => toolCall('a', args)))
  await turn()
  assert.deepEqual(notices(), [nudge])
})

test('calls that differ in what they do are no repetition, and neither is the first of a new kind', async () => {
  const script = [
    ...times(9, index => toolCall('a', { offset: index })),
    toolCall('b', { description: 'one' }),
    toolCall('b', { description: 'two' }),
    toolCall('b', { description: 'three' }),
  ]
  const { turn, notices, end } = await setup(script)
  await turn()
  assert.deepEqual([notices(), end()], [[], 'completed'])
})

test('an edit between two runs of a test is work, not a circle', async () => {
  const script = times(12, index => toolCall(index % 2 ? 'a' : 'b', index % 2 ? {} : { old: index }))
  const { turn, notices, end } = await setup(script)
  await turn()
  assert.deepEqual([notices(), end()], [[], 'completed'])
})

test('the count begins anew with another call, and with what a person says', async () => {
  const same = toolCall('a', {})
  const script = [same, same, toolCall('b', {}), same, same, text('1'), same, same, text('2')]
  const { turn, notices } = await setup(script)
  await turn()
  await turn('more')
  assert.deepEqual(notices(), [])
})

test('while results still change the end comes later', async () => {
  const { turn, add, end, notices, ran } = await setup(times(50, () => toolCall('poll', {})))
  let count = 0
  add('poll', () => `state ${++count}`)
  await turn()
  assert.equal(ran.length, 15)
  assert.equal(end(), 'the model made the same call of poll 16 times in a row')
  assert.ok(notices()[1]?.endsWith('- poll {}\nStop and think about why. At 16 times the turn is ended.'))
})

test('the same error of one tool in many ways is noticed, and ends the turn at last', async () => {
  const { turn, add, notices, end } = await setup(times(50, index => toolCall('bad', { try: index })))
  add('bad', () => {
    throw new Error('no such file')
  })
  await turn()
  assert.equal(
    notices()[0],
    'bad failed 3 times in a row with the same error. If that does not bring you further, try something else.',
  )
  assert.equal(end(), 'bad failed 16 times in a row with the same error')
})

test('tools that are meant to be polled neither count nor break a row', async () => {
  const poll = toolCall('task_output', { task_id: 'x' })
  const same = toolCall('a', {})
  const { turn, notices, end } = await setup([...times(30, () => poll), same, poll, same, poll, same])
  await turn()
  assert.deepEqual([notices(), end()], [[nudge], 'completed'])
})

test('a pattern excludes every tool it fits', async () => {
  const { turn, add, notices } = await setup(
    times(9, () => toolCall('mcp__ci__status', {})),
    { exclude: ['mcp__ci__*'] },
  )
  add('mcp__ci__status')
  await turn()
  assert.deepEqual(notices(), [])
})

test('calls that were refused, are unknown or have broken arguments count as well', async () => {
  const { ctx, turn, notices } = await setup([
    ...times(3, () => toolCall('a', {})),
    ...times(3, () => toolCall('nothing', {})),
    ...times(3, () => toolCall('b', '{broken')),
  ])
  ctx.on('tools/pre-execute', (exec, next) =>
    exec.name === 'a' ? Promise.resolve({ kind: 'deny', reason: 'no' }) : next(),
  )
  await turn()
  assert.deepEqual(
    notices().map(each => /call of (\w+) 3 times/.exec(each)?.[1]),
    ['a', 'nothing', 'b'],
  )
})

test('twenty equal calls in one answer are refused from the eighth on, each with a result', async () => {
  const { turn, ran, results, end } = await setup([
    toolCalls(Array.from({ length: 20 }, () => ({ name: 'a', args: {} }))),
  ])
  await turn()
  assert.deepEqual([ran.length, results().length], [7, 20])
  assert.equal(
    results()[19],
    'Error: this call was made 20 times in a row; do something else, or say what keeps you',
  )
  assert.equal(end(), 'the model made the same call of a 20 times in a row')
})

test('each agent is counted by itself', async () => {
  const same = toolCall('a', {})
  const { ctx, turn, notices, ran } = await setup([same, same, same, text('of the other')])
  const other = ctx.agentLoop.create(undefined, { provider: 'mock', model: 'mock' })
  ctx.on('agent/pre-step', async ({ agent, step }, next) => {
    if (agent !== other && step === 3) {
      other.followup(say('hello'))
      await other.whenIdle()
    }
    return next()
  })
  await turn()
  assert.deepEqual([ran.length, notices()], [3, []])
  assert.equal(other.session.messages.length, 4)
})

/** Somebody who is asked, and says `outcome`. */
function person(outcome: 'allowed-once' | 'rejected') {
  const asked: (string | undefined)[] = []
  const approval = {
    canAnswer: () => true,
    request: ({ reason }: { readonly reason?: string }) => {
      asked.push(reason)
      return Promise.resolve({ outcome, reason: 'look again' })
    },
  }
  return { asked, approval: approval as unknown as Approval }
}

test('where somebody can answer he is asked once, and a yes gives as much again', async () => {
  const { ctx, turn, ran, end } = await setup(times(50, () => toolCall('a', {})))
  const { asked, approval } = person('allowed-once')
  ctx.provide('approval', approval)
  await turn()
  assert.deepEqual(asked, ['the same call for the 8th time in a row'])
  assert.equal(ran.length, 15)
  assert.equal(end(), 'the model made the same call of a 16 times in a row')
})

test('a no is told to the model, and the next such call ends the turn', async () => {
  const { ctx, turn, ran, end, results } = await setup(times(50, () => toolCall('a', {})))
  const { asked, approval } = person('rejected')
  ctx.provide('approval', approval)
  await turn()
  assert.deepEqual([asked.length, ran.length], [1, 7])
  assert.equal(results()[7], 'Error: the user rejected this call: look again')
  assert.equal(end(), 'the model made the same call of a 9 times in a row')
})

test('answers without a call that something keeps asking for are noted once, and then the turn ends', async () => {
  const { ctx, turn, notices, end, agent } = await setup(times(50, () => text('I will now read the file.')))
  ctx.on('agent/turn-stopping', () => {
    agent.steer({ ...say('go on'), source: { kind: 'plugin', plugin: 'goal' } })
  })
  await turn()
  assert.deepEqual(notices(), [
    'You have answered 3 times without calling a tool. Do the next thing now, or say what keeps you.',
  ])
  assert.equal(end(), 'the model answered 8 times in a row without doing anything')
})

test('a turn that was ended so can be gone on with', async () => {
  const { turn, end, agent } = await setup([...times(8, () => toolCall('a', {})), text('sorry')])
  await turn()
  await turn('try something else')
  assert.equal(end(), 'completed')
  assert.match(outline(agent.session.events), /te:aborted\{hook\}.*te:completed$/)
})

test('the last threshold ends the turn, and thresholds that do not rise are refused', async () => {
  const { turn, end, notices } = await setup(
    times(9, () => toolCall('a', {})),
    { thresholds: [2] },
  )
  await turn()
  assert.deepEqual([end(), notices()], ['the model made the same call of a 2 times in a row', []])
  const { ctx } = await createHarness()
  for (const thresholds of [[], [1, 3], [5, 3], [3, 3], [2.5]])
    await assert.rejects(async () => ctx.plugin(repeatToolGuard, { thresholds }), /thresholds/)
})

test('without the plugin nobody counts', async () => {
  const { plugin, turn, ran, end } = await setup(times(12, () => toolCall('a', {})))
  await plugin.dispose()
  await turn()
  assert.deepEqual([ran.length, end()], [12, 'completed'])
})
