import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import { interruptedTurnClosers, Session } from '../../core/session/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { approval } from '../approval/index.ts'
import { sandbox } from '../sandbox/index.ts'
import { fail, ScriptedAdapter, text, toolCall, toolCalls } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { retry } from '../retry/index.ts'
import { Redaction } from '../session-export/index.ts'
import {
  differenceLines,
  readRecording,
  recordSession,
  runRecording,
  withRequests,
  writeRecording,
} from './index.ts'
import type { Recording } from './index.ts'
import { placeOf } from '../time-travel/index.ts'

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

test('in a composition without its plugins a recording runs on stand-ins, with tools that came later', async t => {
  const { ctx, agent, turn } = await setup(
    t,
    toolCall('look', {}),
    text('one'),
    toolCall('late', {}),
    text('two'),
  )
  ctx.systemPrompt.section({ name: 'rules', order: 1, text: 'Only {{cwd}}.' })
  ctx.systemPrompt.context({ name: 'day', order: 1, text: 'It is 2026-11-30.' })
  await turn('one')
  ctx.tools.register(defineTool({ name: 'late', description: 'Late.', parameters: {}, execute: () => 'x' }))
  await turn('two')
  const recording = recordSession(agent.session)
  const bare = await createHarness()
  t.after(() => bare.ctx.dispose())
  const report = await runRecording(recording, { ctx: bare.ctx, workspace: '/srv/other', standIns: true })
  assert.equal(report.difference, undefined)
  assert.equal(report.made.length, 4)
  assert.deepEqual(bare.ctx.tools.schemas(), [])
  const { difference } = await runRecording(recording, { ctx: bare.ctx, workspace: '/srv/other' })
  assert.ok(difference)
  assert.match(differenceLines(difference)[0] ?? '', /^request 1\.1 is another one from its tools on$/)
})

test('a history that was shortened is shortened again, between turns and between two attempts', async t => {
  const { ctx, adapter, agent, turn } = await setup(t)
  adapter.push(
    toolCall('look', { what: 'a' }),
    text('one'),
    text('two'),
    fail('CONTEXT_OVERFLOW'),
    text('three'),
  )
  const { session } = agent
  const replace = (start: number, end: number, words: string): void => {
    const seqs = session.surface.nodes.slice(start, end)
    session.append('user/message', note(words), {
      surfaceOp: { op: 'replace', start: seqs[0] ?? 0, end: seqs.at(-1) ?? 0 },
      sourceEventSeqs: seqs,
    })
  }
  ctx.on('agent/request-error', async ({ agent: who }, next) => {
    if (who !== agent) return await next()
    replace(0, 3, `shorter still in ${cwd}`)
    return { kind: 'retry' }
  })
  await turn('one')
  const result = session.last('tool/result')
  assert.ok(result)
  const [block] = result.data.message.content
  const pruned = {
    ...result.data.message,
    content: [{ ...block, content: [{ type: 'text', text: '(cut)' }] }],
  } as const
  session.append(
    'tool/result',
    { ...result.data, message: pruned },
    { surfaceOp: { op: 'replace', start: result.seq, end: result.seq }, sourceEventSeqs: [result.seq] },
  )
  replace(0, 2, 'a summary')
  await turn('two')
  await turn('three')
  const recording = recordSession(session)
  assert.deepEqual(
    recording.requests.map(({ replaced = [] }) =>
      replaced.map(({ type, index, count }) => `${type} ${index}+${count}`),
    ),
    [[], [], ['tool/result 2+1', 'user/message 0+2'], [], ['user/message 0+3']],
  )
  assert.equal((await again(t, recording)).difference, undefined)
})

test('what a person allowed or refused is an input, and nobody is asked again', async t => {
  const { ctx, adapter, agent, turn } = await setup(t)
  await ctx.plugin(sandbox)
  await ctx.plugin(approval, {})
  const wants = { access: 'full-access', justification: 'to see' } as const
  const bash = (execute: () => string) =>
    defineTool({
      name: 'bash',
      description: 'Runs.',
      parameters: {},
      effects: () => [{ kind: 'command', command: 'make', wants }],
      execute,
    })
  ctx.tools.register(bash(() => 'ran'))
  const replies = ['allowed-once', 'rejected'] as const
  let asked = 0
  ctx.on('approval/request', async () => ({
    outcome: replies[asked++] ?? 'unavailable',
    reason: 'not that one',
  }))
  adapter.push(toolCall('bash', {}), toolCall('bash', {}), text('one'), toolCall('bash', {}), text('two'))
  await turn('one')
  ctx.sandboxPolicy.setMode(agent.session, 'read-only')
  await turn('two')
  const recording = recordSession(agent.session)
  assert.deepEqual(
    [asked, recording.requests.map(({ permission }) => permission?.mode)],
    [3, [undefined, undefined, undefined, 'read-only', 'read-only']],
  )
  const other = await setup(t)
  await other.ctx.plugin(sandbox)
  await other.ctx.plugin(approval, {})
  other.ctx.tools.register(bash(() => assert.fail('it ran')))
  other.ctx.on('approval/request', () => assert.fail('a person was asked'))
  const report = await runRecording(recording, { ctx: other.ctx, workspace: cwd })
  assert.equal(report.difference, undefined)
  assert.equal(report.made.length, 5)
})

test('of a session whose plugin is gone everything is recorded that its model saw', async t => {
  const { agent, turn } = await setup(t, text('one'))
  await turn('one')
  const { events, header, id } = agent.session
  const end = events.at(-1)
  assert.ok(end)
  const foreign = { type: 'gone/fact', seq: end.seq + 1, time: end.time, data: {} } as unknown as SessionEvent
  const session = Session.fromRestore(id, [...structuredClone(events), foreign], header)
  assert.match(session.readOnly ?? '', /gone\/fact/)
  assert.equal((await again(t, recordSession(session))).difference, undefined)
})

test('the first request that is not the recorded one ends the run, and is told with its place', async t => {
  const { agent, turn } = await setup(t, toolCall('look', { what: 'x' }), text('done'), text('more'))
  await turn('one')
  await turn('two')
  const recording = recordSession(agent.session)
  const run = async (change: (ctx: Context) => void, edit?: (recording: Recording) => Recording) => {
    const { ctx } = await setup(t)
    change(ctx)
    const changed = edit?.(recording) ?? recording
    const { difference, made } = await runRecording(changed, { ctx, workspace: cwd })
    return { text: difference === undefined ? [] : differenceLines(difference), made: made.length }
  }
  const section = await run(ctx => void ctx.systemPrompt.section({ name: 'x', order: 9, text: 'New.' }))
  assert.equal(section.made, 1)
  assert.equal(section.text[0], 'request 1.1 is another one from its system on')
  assert.match(section.text[2] ?? '', /^\+ .*New\.$/s)

  const described = await run(ctx => {
    const look = ctx.tools.get('look')
    assert.ok(look)
    ctx.plugin({
      name: 'other',
      inject: ['tools'],
      apply: inner => void inner.tools.register({ ...look, name: 'other', parameters: look.parameters }),
    })
  })
  assert.equal(described.text[0], 'request 1.1 is another one from its tools on')

  const extra = await run(ctx => {
    ctx.on('agent/turn-stopping', ({ agent: own }) => own.steer(note('go on')))
  })
  assert.deepEqual(extra.text.slice(0, 1), ['request 2.1 is another one from its message 4 on'])
  assert.equal(extra.made, 3)

  const missing = await run(ctx => {
    ctx.on('agent/pre-step', async ({ turn: at }, next) => (at === 2 ? { kind: 'reject' } : await next()))
  })
  assert.deepEqual(missing, { text: ['request 2.1 was recorded and is not made any more'], made: 2 })

  const config = await run(ctx => {
    ctx.on('agent/request', async (_, next) => ({ ...(await next()), temperature: 1 }), { prepend: true })
  })
  assert.deepEqual(config.text, ['request 1.1 has another config: temperature unset → 1'])
  const more = await run(
    () => {},
    ({ requests }) => ({ requests: requests.slice(0, 1).map(each => ({ ...each })) }),
  )
  assert.deepEqual(more.text[0], 'request 2 is made, and the recording has no more')
})

test('a run that goes on gives all requests as they are now, for the recording that takes their place', async t => {
  const { agent, turn } = await setup(t, text('done'), text('more'))
  await turn('one')
  await turn('two')
  const recording = recordSession(agent.session)
  const { ctx } = await setup(t)
  ctx.systemPrompt.section({ name: 'x', order: 9, text: 'New.' })
  const { made, difference } = await runRecording(recording, { ctx, workspace: cwd, goOn: true })
  assert.ok(difference)
  const updated = withRequests(recording, made)
  assert.ok(updated)
  const again = await runRecording(updated, { ctx, workspace: cwd })
  assert.equal(again.difference, undefined)
  assert.equal(withRequests(recording, made.slice(1)), undefined)
})

test('nothing of the machine and no secret is in a recording, and days that a program told are none either', async t => {
  const secret = 'sk-abcdefghijklmnopqrstuvwx'
  const { agent, turn } = await setup(
    t,
    toolCall('look', { what: `${cwd}/a ${secret}` }),
    text(`${secret} is it`),
  )
  agent.inject(note('It is 2026-11-30T12:00:00Z, a Monday; see 2026-11-29.'))
  await turn(`look into ${cwd}, not ${cwd}-old, at /home/me/x`)
  const recording = recordSession(agent.session, { home: '/home/me', redaction: new Redaction() })
  const written = writeRecording(recording)
  assert.doesNotMatch(written, /abcdefghijkl|\/home\/me/)
  assert.match(written, /look into \{workspace\}, not \/srv\/app-old, at \{home\}\/x/)
  assert.match(written, /It is \{time\}, a Monday; see \{date\}\./)
  const { ctx } = await setup(t)
  const { difference } = await runRecording(recording, { ctx, workspace: '/srv/b', home: '/home/you' })
  assert.equal(difference, undefined)
})

test('a file that is no recording, a newer or a damaged one is refused with what is wrong', async t => {
  const { agent, turn } = await setup(t, text('done'))
  await turn('one')
  const good = writeRecording(recordSession(agent.session))
  const [head = '', line = ''] = good.split('\n')
  const request = JSON.parse(line) as Record<string, unknown>
  const withLine = (over: object): string => `${head}\n${JSON.stringify({ ...request, ...over })}\n`
  const cases: [string, string, RegExp][] = [
    ['', 'NOT_A_RECORDING', /^"f" is no recording of a session$/],
    ['{"format":"dsh-export"}\n', 'NOT_A_RECORDING', /no recording/],
    ['null', 'NOT_A_RECORDING', /no recording/],
    ['{"format":"dsh-recording","version":2}', 'RECORDING_TOO_NEW', /version 2 .* reads up to 1$/],
    [`${head}\n`, 'RECORDING_DAMAGED', /^f: it says that it holds 1 requests, and holds 0$/],
    [`${head}\n${line.slice(0, 50)}\n`, 'RECORDING_DAMAGED', /^f:2: /],
    [withLine({ turn: 0 }), 'RECORDING_DAMAGED', /^f:2: /],
    [withLine({ keep: 3 }), 'RECORDING_DAMAGED', /^f:2: keep is 3, and there are 0 messages$/],
    [withLine({ answer: [{ type: 'nonsense' }] }), 'RECORDING_DAMAGED', /^f:2: /],
    [withLine({ header: undefined }), 'RECORDING_DAMAGED', /^f:2: header is missing$/],
    [withLine({ messages: 'none' }), 'RECORDING_DAMAGED', /^f:2: /],
  ]
  for (const [content, code, message] of cases)
    assert.throws(() => readRecording(content, 'f'), { code, message }, content)
  const silent = await setup(t)
  assert.throws(() => recordSession(silent.agent.session), { code: 'NOTHING_TO_RECORD' })
})
