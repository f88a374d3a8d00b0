import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId, MessageId, sessionFormatVersion, SessionId } from '@dsh/protocol'
import type { SessionEventMap } from '@dsh/protocol'
import { lintLog } from '../../core/invariants/index.ts'
import {
  createHarness,
  headerFact,
  logOf,
  MemoryStore,
  resultFact,
  say,
  userFact,
} from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { approval } from '../approval/index.ts'
import { sandbox } from '../sandbox/index.ts'
import { fs } from '../fs/index.ts'
import { text } from '../llm-scripted/index.ts'
import { mountPersistence } from '../persistence/index.ts'
import { recovery } from './index.ts'

const id = SessionId('s')
const mock = { provider: 'mock', model: 'mock' }

interface Call {
  readonly id: string
  readonly name: string
  readonly args: string
  readonly hasStarted?: boolean
  /** Announced contents of the file it changes: before and after. */
  readonly change?: readonly [path: string, before: string | null, after: string]
  readonly wasAsked?: boolean
}

/** A log that breaks off while these calls ran. */
function brokenOff(calls: readonly Call[], turn = 1): Draft[] {
  const at = { turn, step: 1 }
  const message: SessionEventMap['assistant/message'] = {
    ...at,
    message: {
      id: MessageId(`answer ${turn}`),
      role: 'assistant',
      content: calls.map(({ id: call, name, args }) => ({
        type: 'tool-call',
        id: CallId(call),
        name,
        arguments: args,
      })),
      source: { kind: 'model', ...mock },
    },
  }
  return [
    ['turn/start', { turn }],
    ['step/start', at],
    ['user/message', userFact('go', `go ${turn}`)],
    ['request/header', headerFact()],
    ['assistant/message', message],
    ...calls.flatMap(call => callDrafts(call, at)),
  ]
}

function callDrafts(
  { id: call, name, args, hasStarted, change, wasAsked }: Call,
  at: { turn: number; step: number },
): Draft[] {
  const callId = CallId(call)
  const drafts: Draft[] = [['tool/call', { ...at, callId, name, arguments: args }]]
  if (wasAsked) drafts.push(['approval/asked', { id: `ask ${call}`, toolName: name, callId }])
  if (hasStarted) drafts.push(['tool/start', { ...at, callId }])
  if (change === undefined) return drafts
  const [path, before, after] = change
  drafts.push(['fs/change', { callId, path, before: before && sha256(before), after: sha256(after) }])
  return drafts
}

function sha256(content: string): string {
  return createHash('sha256').update(content).digest('hex')
}

async function setup(t: TestContext, drafts: readonly Draft[]) {
  const folder = mkdtempSync(join(tmpdir(), 'recovery-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const { ctx, adapter } = await createHarness()
  await ctx.plugin(sandbox)
  await ctx.plugin(approval)
  await ctx.plugin(fs)
  const store = new MemoryStore()
  await ctx.plugin({
    name: 'store',
    inject: ['sessions'],
    apply: own => mountPersistence(own, store.open(), { writeBatchMaxDelayMs: 1 }),
  })
  const plugin = ctx.plugin(recovery)
  await plugin
  const writer = store.open().begin({ version: sessionFormatVersion, id, createdAt: 0, cwd: folder })
  await writer.append(logOf(...drafts))
  await writer.close()
  const resume = () => ctx.agents.resume({ resumeSessionId: id, agentOptions: mock })
  return { ctx, adapter, folder, store, plugin, resume }
}

/** What the recovery says in the requests, one entry a request. */
function noticesIn(requests: readonly { readonly messages: readonly unknown[] }[]): string[][] {
  return requests.map(({ messages }) =>
    messages
      .map(message =>
        (message as { content: { text?: string }[] }).content.map(block => block.text ?? '').join(''),
      )
      .filter(said => said.startsWith('The program ended')),
  )
}

const paths = (folder: string, names: readonly string[]): string[] => names.map(name => join(folder, name))

test('after a crash each unfinished call is told apart, from the log and the files it announced', async t => {
  const where = mkdtempSync(join(tmpdir(), 'recovery-files-'))
  t.after(() => rmSync(where, { recursive: true }))
  const [done = '', kept = '', other = '', made = '', absent = ''] = paths(where, [
    'done',
    'kept',
    'other',
    'made',
    'absent',
  ])
  writeFileSync(done, 'new')
  writeFileSync(kept, 'old')
  writeFileSync(other, 'somebody else')
  writeFileSync(made, 'new')
  const { ctx, adapter, resume } = await setup(
    t,
    brokenOff([
      { id: 'a', name: 'edit', args: '{"n":1}', hasStarted: true, change: [done, 'old', 'new'] },
      { id: 'b', name: 'edit', args: '{"n":2}', hasStarted: true, change: [kept, 'old', 'new'] },
      { id: 'c', name: 'edit', args: '{"n":3}', hasStarted: true, change: [other, 'old', 'new'] },
      { id: 'd', name: 'write', args: '{"n":4}', hasStarted: true, change: [made, null, 'new'] },
      { id: 'e', name: 'write', args: '{"n":5}', hasStarted: true, change: [absent, null, 'new'] },
      { id: 'f', name: 'bash', args: '{"n":6}', hasStarted: true },
      { id: 'g', name: 'bash', args: '{"n":7}', wasAsked: true },
      { id: 'h', name: 'bash', args: '{"n":8}' },
    ]),
  )
  const { agent } = await resume()
  const report = await ctx.recovery.report(agent.session)
  assert.deepEqual(
    report?.turns[0]?.calls.map(({ callId, verdict, wasAsked }) => [callId, verdict, wasAsked]),
    [
      ['a', 'finished', false],
      ['b', 'changed nothing', false],
      ['c', 'unknown', false],
      ['d', 'finished', false],
      ['e', 'changed nothing', false],
      ['f', 'unknown', false],
      ['g', 'never started', true],
      ['h', 'never started', false],
    ],
  )
  adapter.push(text('ok'), text('ok'))
  for (const prompt of ['one', 'two']) {
    agent.followup(say(prompt))
    await agent.whenIdle()
  }
  const notice = [
    'The program ended in the middle of the work above and was started again. What it left:',
    '- edit {"n":1}: took effect: the file holds what the call wrote',
    '- edit {"n":2}: did not take effect: the file is as it was before',
    '- edit {"n":3}: outcome unknown: look at what it did before you run it again',
    '- write {"n":4}: took effect: the file holds what the call wrote',
    '- write {"n":5}: did not take effect: the file is as it was before',
    '- bash {"n":6}: outcome unknown: look at what it did before you run it again',
    '- bash {"n":7}: never started, changed nothing; it was waiting for an approval that is no longer asked for',
    '- bash {"n":8}: never started, changed nothing',
  ].join('\n')
  assert.deepEqual(noticesIn(adapter.requests), [[notice], [notice]], 'told once, and then it is history')
  const message = agent.session.events.find(
    ({ type, data }) => type === 'user/message' && data.source.kind === 'plugin',
  )
  assert.deepEqual(message?.type === 'user/message' && message.data.source, {
    kind: 'plugin',
    plugin: 'recovery',
    form: 'notice',
    summary: 'Cut off: 2 calls finished, 2 changed nothing, 2 unknown, 2 never started',
  })
  assert.deepEqual(lintLog(agent.session.events), [])
  assert.equal(await ctx.recovery.report(agent.session), undefined)
})

test('what was lost with the process is told with it, and only then', async t => {
  const { ctx, adapter, resume } = await setup(t, brokenOff([]))
  const forget = ctx.recovery.register(session => [`task 1 of session ${session.id} has ended`])
  const { agent } = await resume()
  adapter.push(text('ok'))
  agent.followup(say('on'))
  await agent.whenIdle()
  assert.match(noticesIn(adapter.requests)[0]?.[0] ?? '', /\n- task 1 of session s has ended$/)
  forget()
})

test('what was lost between two turns is told as well, once', async t => {
  const whole: Draft[] = [
    ...brokenOff([]),
    ['step/end', { turn: 1, step: 1 }],
    ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
  ]
  const { ctx, adapter, resume } = await setup(t, whole)
  ctx.recovery.register(() => ['task 1 has ended'])
  const { agent } = await resume()
  const report = await ctx.recovery.report(agent.session)
  assert.deepEqual([report?.turns, report?.lost], [[], ['task 1 has ended']])
  assert.equal(report?.time, agent.session.last('turn/end')?.time)
  adapter.push(text('ok'), text('ok'))
  for (const prompt of ['one', 'two']) {
    agent.followup(say(prompt))
    await agent.whenIdle()
  }
  const notice = [
    'The program ended in the middle of the work above and was started again. What it left:',
    '- task 1 has ended',
  ].join('\n')
  assert.deepEqual(noticesIn(adapter.requests), [[notice], [notice]])
})

test('a session that came to its end, or lost nothing, is told nothing', async t => {
  const at = { turn: 1, step: 1 }
  const whole: Draft[] = [
    ...brokenOff([{ id: 'a', name: 'bash', args: '{}', hasStarted: true }]),
    ['tool/result', resultFact('a', 'done')],
    ['step/end', at],
    ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
  ]
  for (const drafts of [whole, brokenOff([])]) {
    const { adapter, resume } = await setup(t, drafts)
    const { agent } = await resume()
    adapter.push(text('ok'))
    agent.followup(say('on'))
    await agent.whenIdle()
    assert.deepEqual(noticesIn(adapter.requests), [[]])
  }
})

test('a second crash before the notice loses nothing of the first', async t => {
  const first = brokenOff([{ id: 'a', name: 'bash', args: '{}', hasStarted: true }])
  const at = { turn: 1, step: 1 }
  const unknown = { name: 'ToolOutcomeUnknownError', code: 'TOOL_OUTCOME_UNKNOWN' }
  const { ctx, resume } = await setup(t, [
    ...first,
    ['tool/result', resultFact('a', 'unknown', { error: unknown })],
    ['step/end', at],
    ['turn/end', { turn: 1, reason: { kind: 'interrupted' } }],
    ['session/end-seed', {}],
    ['turn/start', { turn: 2 }],
  ])
  const { agent } = await resume()
  const report = await ctx.recovery.report(agent.session)
  assert.deepEqual(
    report?.turns.map(({ turn, calls }) => [turn, calls.map(({ callId }) => callId)]),
    [
      [1, ['a']],
      [2, []],
    ],
  )
})

test('without the plugin nothing is told and nothing is asked', async t => {
  const { ctx, adapter, plugin, resume } = await setup(
    t,
    brokenOff([{ id: 'a', name: 'bash', args: '{}', hasStarted: true }]),
  )
  await plugin.dispose()
  assert.equal(ctx.get('recovery'), undefined)
  const { agent } = await resume()
  adapter.push(text('ok'))
  agent.followup(say('on'))
  await agent.whenIdle()
  assert.deepEqual(noticesIn(adapter.requests), [[]])
})
