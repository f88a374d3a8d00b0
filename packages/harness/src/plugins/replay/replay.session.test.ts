import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { fail, ScriptedAdapter, text, toolCall, toolCalls } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { planReplay, replaySession } from './index.ts'
import type { ReplayOptions, ReplayReport } from './index.ts'

const cwd = '/srv/app'
let replays = 0

/** A session of one model, another model, and what tools did. */
async function setup(t: TestContext, ...script: readonly ScriptEntry[]) {
  const { ctx, adapter } = await createHarness(script)
  t.after(() => ctx.dispose())
  const ran: string[] = []
  for (const name of ['look', 'touch'])
    ctx.tools.register(
      defineTool({
        name,
        description: `Does ${name}.`,
        parameters: { what: { type: 'string' }, how: { type: 'string' } },
        isConcurrencySafe: () => name === 'look',
        execute: ({ what }) => {
          ran.push(`${name} ${what ?? ''}`)
          if (what === 'fail') throw new Error('it is broken')
          return `${name}: ${what ?? ''}`
        },
      }),
    )
  const agent = ctx.agentLoop.create(SessionId('s'), { provider: 'mock', model: 'mock' }, { cwd })
  const turn = async (words: string): Promise<void> => {
    agent.followup(say(words))
    await agent.whenIdle()
  }
  const replay = async (
    answers: readonly ScriptEntry[],
    { from, ...options }: Partial<ReplayOptions> & { readonly from?: number } = {},
  ): Promise<ReplayReport & { readonly session: Session }> => {
    ran.length = 0
    const unserve = ctx.llm.registerAdapter(['other'], new ScriptedAdapter(answers))
    const sessionId = SessionId(`replay-${++replays}`)
    const sessions: Session[] = []
    const stop = ctx.on('session/created', session => void sessions.push(session))
    const source = agent.session
    const report = await replaySession({
      ctx,
      source,
      plan: planReplay(source, from),
      route: { provider: 'other', model: 'm' },
      sessionId,
      workspace: '/srv/copy',
      tools: 'recorded',
      ...options,
    })
    stop()
    unserve()
    const [session] = sessions
    assert.ok(session)
    return { ...report, session }
  }
  return { ctx, adapter, agent, turn, ran, replay }
}

/** The texts that a session's model has before it. */
function textsIn({ messages }: Session): string[] {
  return messages.flatMap(({ content }) =>
    content.map(block => {
      if (block.type === 'text') return block.text
      if (block.type === 'tool-call') return `${block.name}?`
      return block.type === 'tool-result' ? `=${textOf(block.content)}` : block.type
    }),
  )
}

function textOf(content: readonly { readonly type: string }[]): string {
  return content.map(block => (block as { text?: string }).text ?? '').join('')
}

test('another model gets the same inputs and results, whatever the order of its arguments and answers', async t => {
  const { turn, replay, ran } = await setup(
    t,
    toolCalls([
      { name: 'look', args: { what: 'a', how: 'b' } },
      { name: 'touch', args: { what: 'fail' } },
    ]),
    text('done'),
    text('more'),
  )
  await turn('one')
  await turn('two')
  const { divergence, recorded, replayed, end, session } = await replay([
    toolCall('look', { how: 'b', what: 'a' }),
    toolCall('touch', { what: 'fail' }),
    text('I see'),
    text('and more'),
  ])
  assert.deepEqual([divergence, end, ran], [undefined, { kind: 'completed' }, []])
  assert.deepEqual(textsIn(session), [
    'one',
    'look?',
    '=look: a',
    'touch?',
    '=Error: it is broken',
    'I see',
    'two',
    'and more',
  ])
  assert.equal(session.header.cwd, '/srv/copy')
  assert.deepEqual([recorded.requests, replayed.requests], [3, 4])
  assert.deepEqual(
    [recorded.calls, replayed.calls],
    [
      { look: 1, touch: 1 },
      { look: 1, touch: 1 },
    ],
  )
  assert.deepEqual([recorded.answer, replayed.answer], ['more', 'and more'])
  assert.deepEqual(
    replayed.usages.map(({ provider, model }) => `${provider}/${model}`),
    Array.from({ length: 4 }, () => 'other/m'),
  )
})

test('the first call that is not the recorded one ends the replay, and so does one that is missing', async t => {
  const { turn, replay, ran } = await setup(
    t,
    toolCall('look', { what: 'a' }),
    toolCall('touch', { what: 'b' }),
    text('done'),
    text('more'),
  )
  await turn('one')
  await turn('two')
  const told = ({ divergence }: ReplayReport): unknown[] => {
    const { turn: at, expected, came } = divergence ?? {}
    return [
      at,
      expected && `${expected.name} ${JSON.stringify(expected.arguments)}`,
      came?.name,
      came?.arguments,
    ]
  }
  const other = await replay([
    toolCall('look', { what: 'a' }),
    toolCall('touch', { what: 'c' }),
    text('never'),
  ])
  assert.deepEqual(told(other), [1, 'touch {"what":"b"}', 'touch', { what: 'c' }])
  assert.deepEqual(other.end, {
    kind: 'aborted',
    reason: { kind: 'hook', reason: 'stopped: no recorded answer' },
  })

  const many = await replay([
    toolCalls([
      { name: 'look', args: { what: 'a' } },
      { name: 'touch', args: { what: 'b' } },
      { name: 'look', args: {} },
    ]),
    text('never'),
  ])
  assert.deepEqual(told(many), [1, undefined, 'look', {}])
  const unknown = await replay([toolCall('gone', { what: 'a' })])
  assert.deepEqual(told(unknown), [1, 'look {"what":"a"}', 'gone', { what: 'a' }])

  const few = await replay([toolCall('look', { what: 'a' }), text('that is all')])
  assert.deepEqual(told(few), [1, 'touch {"what":"b"}', undefined, undefined])
  assert.deepEqual([few.replayed.turns, few.end], [1, { kind: 'completed' }])
  assert.deepEqual(ran, [])
})

test('a tool whose plugin is gone is offered and answered as it was recorded', async t => {
  const { ctx, turn, replay } = await setup(t, toolCall('old', { n: 1 }), text('done'))
  const remove = ctx.tools.register(
    defineTool({ name: 'old', description: 'Old.', parameters: {}, execute: () => 'was here' }),
  )
  await turn('one')
  remove()
  const { divergence, session } = await replay([toolCall('old', { n: 1 }), text('ok')])
  assert.equal(divergence, undefined)
  assert.deepEqual(textsIn(session), ['one', 'old?', '=was here', 'ok'])
  const live = await replay([toolCall('old', { n: 1 }), text('ok')], { tools: 'live' })
  assert.match(textsIn(live.session)[2] ?? '', /^=Error: .*"old"/)
  assert.deepEqual(
    ctx.tools.schemas().map(({ name }) => name),
    ['look', 'touch'],
  )
})

test('a call that was cut off has no recorded answer', async t => {
  const { ctx, agent, turn, replay } = await setup(t, toolCall('touch', {}), text('later'))
  ctx.on('tools/execute', (exec, next) => {
    if (exec.agent === agent) agent.cancel({ kind: 'user' })
    return next()
  })
  await turn('one')
  const { divergence } = await replay([toolCall('touch', {})])
  assert.deepEqual(divergence?.came, { name: 'touch', arguments: {} })
})

test('live tools run, also behind a call that was never recorded, which is told', async t => {
  const { turn, replay, ran } = await setup(t, toolCall('look', { what: 'a' }), text('done'), text('more'))
  await turn('one')
  await turn('two')
  const { divergence, replayed } = await replay(
    [toolCall('look', { what: 'a' }), toolCall('touch', { what: 'z' }), text('ok'), text('all')],
    { tools: 'live' },
  )
  assert.deepEqual(ran, ['look a', 'touch z'])
  assert.deepEqual(
    [divergence?.expected, divergence?.came],
    [undefined, { name: 'touch', arguments: { what: 'z' } }],
  )
  assert.equal(replayed.answer, 'all')
})

test('from an event on, the new session begins with what came before its turn', async t => {
  const { agent, turn, replay } = await setup(t, text('first'), text('second'), text('third'))
  for (const words of ['one', 'two', 'three']) await turn(words)
  const prompt = agent.session.events.filter(event => event.type === 'user/message')[1]
  assert.ok(prompt)
  const { session, recorded, replayed } = await replay([text('2'), text('3')], { from: prompt.seq })
  assert.deepEqual(textsIn(session), ['one', 'first', 'two', '2', 'three', '3'])
  const { parentSession, seedLength = 0 } = session.header
  assert.equal(parentSession, agent.session.id)
  assert.equal(session.at(seedLength - 1)?.type, 'turn/end')
  assert.deepEqual([recorded.turns, replayed.turns], [2, 2])
  const last = planReplay(agent.session, agent.session.length - 1)
  assert.deepEqual(
    last.turns.map(each => each.turn),
    [3],
  )
})

test('what was said in the middle of a turn joins the same step, or comes later where the model was quicker', async t => {
  const { adapter, agent, turn, replay } = await setup(t)
  adapter.push(() => {
    agent.steer(say('and this'))
    return toolCall('look', {})
  }, text('done'))
  await turn('one')
  const same = await replay([toolCall('look', {}), text('ok')])
  assert.deepEqual(textsIn(same.session), ['one', 'look?', '=look: ', 'and this', 'ok'])
  const quick = await replay([text('at once'), text('ok')])
  assert.deepEqual(textsIn(quick.session), ['one', 'at once', 'and this', 'ok'])
  assert.equal(quick.divergence?.came, undefined)
  assert.equal(quick.divergence?.expected?.name, 'look')
})

test('a turn that fails ends the replay with its failure', async t => {
  const { turn, replay } = await setup(t, text('first'), text('second'))
  await turn('one')
  await turn('two')
  const { end, replayed, divergence } = await replay([fail('AUTH')])
  assert.equal(end?.kind === 'error' && end.error.code, 'AUTH')
  assert.deepEqual([replayed.turns, divergence], [1, undefined])
})

test('a session in which no person says anything cannot be replayed', async t => {
  const { agent } = await setup(t)
  assert.throws(() => planReplay(agent.session, undefined), {
    code: 'NOTHING_TO_REPLAY',
    message: 'no person says anything in session "s"',
  })
})

test('a replay that is cancelled ends, and leaves no agent behind', async t => {
  const { ctx, turn, replay } = await setup(t, text('first'))
  await turn('one')
  const stop = new AbortController()
  const hang: ScriptEntry = () => {
    stop.abort()
    return []
  }
  const { end } = await replay([hang], { signal: stop.signal })
  assert.deepEqual(end, { kind: 'aborted', reason: { kind: 'user' } })
  assert.deepEqual(
    ctx.agents.list().map(({ id }) => id),
    ['s'],
  )
})
