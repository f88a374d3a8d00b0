import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import { interruptedTurnClosers } from '../../core/session/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { fail, ScriptedAdapter, text, toolCall, toolCalls } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { retry } from '../retry/index.ts'
import { placeOf, readRecording, recordSession, runRecording, writeRecording } from './index.ts'
import type { Recording } from './index.ts'

const cwd = '/srv/app'

/** A harness with a tool or two, of which some runs are told. */
async function setup(t: TestContext, ...script: readonly ScriptEntry[]) {
  const harness = await createHarness(script)
  const { ctx } = harness
  t.after(() => ctx.dispose())
  const ran: string[] = []
  for (const name of ['look', 'touch'])
    ctx.tools.register(
      defineTool({
        name,
        description: `Does ${name}.`,
        parameters: { what: { type: 'string' } },
        isConcurrencySafe: () => name === 'look',
        execute: ({ what }: { what?: string }) => {
          ran.push(name)
          if (what === 'fail') throw new Error('it is broken')
          return `${name} ${what ?? ''} in ${cwd}`
        },
      }),
    )
  ctx.tools.register(
    defineTool({
      name: 'finish',
      description: 'Ends the turn.',
      parameters: {},
      execute: (_args, exec) => {
        exec.concludeTurn()
        return 'over'
      },
    }),
  )
  const agent = ctx.agentLoop.create(SessionId('s'), { provider: 'mock', model: 'mock' }, { cwd })
  const turn = async (words: string, who: Agent = agent): Promise<void> => {
    who.followup(say(words))
    await who.whenIdle()
  }
  return { ...harness, agent, turn, ran }
}

/** Through the file, and in a harness of its own. */
async function again(t: TestContext, recording: Recording, options: { standIns?: boolean } = {}) {
  const { ctx, ran } = await setup(t)
  const read = readRecording(writeRecording(recording), 'x')
  assert.deepEqual(read, JSON.parse(JSON.stringify(recording)))
  const report = await runRecording(read, { ctx, workspace: '/srv/other', ...options })
  assert.deepEqual(ran, [])
  return report
}

test('a recorded session asks the same things again, and runs no tool', async t => {
  const { agent, turn } = await setup(
    t,
    toolCalls([
      { name: 'look', args: { what: `${cwd}/a` } },
      { name: 'look', args: {} },
      { name: 'touch', args: { what: 'fail' } },
      { name: 'gone', args: {} },
      { name: 'look', args: '{bad' },
    ]),
    text('done'),
    fail('BAD_REQUEST'),
    text('ok'),
  )
  await turn('one')
  await turn('two')
  await turn('three')
  const recording = recordSession(agent.session)
  assert.equal(recording.requests.length, 4)
  const report = await again(t, recording)
  assert.equal(report.difference, undefined)
  assert.equal(report.made.length, 4)
  assert.doesNotMatch(writeRecording(recording), /srv/)
})

const note = (words: string) =>
  createUserMessage({
    content: [{ type: 'text', text: words }],
    source: { kind: 'plugin', plugin: 'notes', form: 'notice', summary: words },
  })

/** An answer that stops after its first word, and the agent that is cancelled then. */
function cutAfter(words: string, cancel: () => void): ScriptEntry {
  return async function* () {
    yield { type: 'block-start', index: 0, blockType: 'text' }
    yield { type: 'text-delta', index: 0, text: words }
    await Promise.resolve()
    cancel()
    yield { type: 'text-delta', index: 0, text: 'never seen' }
  }
}

test('turns that somebody stopped stop where they did, and what was seen of them stays', async t => {
  const { adapter, agent, turn, ctx } = await setup(t)
  const cancel = (): void => agent.cancel({ kind: 'user' })
  ctx.on('tools/execute', (exec, next) => {
    if (exec.name === 'touch') cancel()
    return next()
  })
  adapter.push(
    cutAfter('I see', cancel),
    () => {
      cancel()
      return []
    },
    toolCalls([
      { name: 'look', args: {} },
      { name: 'touch', args: {} },
      { name: 'look', args: {} },
    ]),
    text('after all that'),
  )
  for (const words of ['one', 'two', 'three', 'four']) await turn(words)
  const recording = recordSession(agent.session)
  assert.deepEqual(
    recording.requests.map(({ outcome, end }) => [outcome, end]),
    [
      ['cut', undefined],
      ['silent', undefined],
      ['answered', 'stopped'],
      ['answered', undefined],
    ],
  )
  assert.equal((await again(t, recording)).difference, undefined)
})

test('what was said in the middle of a turn is said again at the same place', async t => {
  const { adapter, agent, turn } = await setup(t)
  adapter.push(
    () => {
      agent.steer(say('and this'))
      agent.inject(note('by the way'))
      agent.followup(say('later'))
      return toolCall('look', {})
    },
    text('first'),
    text('second'),
    toolCall('finish', {}),
    text('end'),
  )
  agent.inject(note('before all'))
  await turn('one')
  await turn('two')
  await turn('three')
  const recording = recordSession(agent.session)
  assert.equal(recording.requests.length, 5)
  assert.equal(recording.requests[3]?.end, 'concluded')
  assert.equal((await again(t, recording)).difference, undefined)
})

test('retries are made again without a wait', async t => {
  const { ctx, agent, turn } = await setup(t)
  await ctx.plugin(retry)
  const policy = { initialDelayMs: 1, maxDelayMs: 1 }
  const slow = Object.assign(new ScriptedAdapter(), { providerRetryPolicy: () => policy })
  ctx.llm.registerAdapter(['slow'], slow)
  slow.push(
    fail('RATE_LIMIT', { providerRetryAfterMs: 1 }),
    fail('SERVER'),
    text('there'),
    fail('SERVER'),
    text('again'),
  )
  ctx.on('agent/request', async (_, next) => ({ ...(await next()), provider: 'slow', model: 'm' }))
  await turn('one')
  await turn('two')
  const recording = recordSession(agent.session)
  assert.deepEqual(recording.requests.map(placeOf), ['1.1', '1.1.2', '1.1.3', '2.1', '2.1.2'])
  assert.equal((await again(t, recording)).difference, undefined)
})

test('a fork in the middle of a turn, and a log that a crash cut off, run to where they were cut', async t => {
  const { ctx, adapter, agent, turn } = await setup(
    t,
    toolCalls([
      { name: 'look', args: {} },
      { name: 'touch', args: {} },
    ]),
    text('done'),
    text('elsewhere'),
  )
  await turn('one')
  const { events } = agent.session
  const middle = events.findLast(event => event.type === 'tool/call')?.seq ?? 0
  const fork = ctx.sessions.fork(agent.session, middle, SessionId('fork'), { openTurn: 'close' })
  const route = { provider: 'mock', model: 'mock' }
  const other = await ctx.agents.create({ sessionId: SessionId('b'), seed: fork.events, agentOptions: route })
  await turn('two', other.agent)
  const recording = recordSession(other.agent.session)
  assert.deepEqual(
    recording.requests.map(({ end }) => end),
    ['stopped', undefined],
  )
  assert.equal((await again(t, recording)).difference, undefined)

  for (const type of ['request/header', 'assistant/chunk', 'tool/call', 'tool/result'] as const) {
    const cut = events.slice(0, events.findIndex(event => event.type === type) + 1)
    const closed = [...cut, ...interruptedTurnClosers(cut, { toolStart: false })]
    const crashed = await ctx.agents.create({
      sessionId: SessionId(`crash ${type}`),
      seed: closed,
      agentOptions: route,
    })
    adapter.push(text('after the crash'))
    await turn('two', crashed.agent)
    const report = await again(t, recordSession(crashed.agent.session))
    assert.equal(report.difference, undefined, type)
  }
})
