import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { AgentStatus } from '../../core/agent/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { createHarness, MemoryStore, say } from '../../testing/index.ts'
import { text, toolCall, toolCalls } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { mountPersistence, PersistenceError } from './index.ts'

async function setup(script: readonly ScriptEntry[]) {
  const store = new MemoryStore()
  const durable = (): string => types(store.events(SessionId('agent-1')))
  const asked: string[] = []
  const watched = script.map((entry): ScriptEntry => {
    if (typeof entry === 'function' || entry === 'hang') return entry
    return () => {
      asked.push(durable())
      return entry
    }
  })
  const harness = await createHarness(watched)
  const never = { set: () => undefined, clear: () => {} }
  const plugin = {
    name: 'store',
    inject: ['sessions'],
    apply: (ctx: Context) =>
      mountPersistence(ctx, store.open(), { writeBatchMaxDelayMs: 200, timers: never }),
  }
  const fiber = harness.ctx.plugin(plugin)
  await fiber
  const ran: string[] = []
  const addTool = (
    name: string,
    body: (ctx: { signal: AbortSignal }) => Promise<string> = async () => 'ok',
  ): void => {
    harness.ctx.tools.register(
      defineTool({
        name,
        description: name,
        parameters: {},
        execute: (_args, exec) => {
          ran.push(durable())
          return body(exec)
        },
      }),
    )
  }
  return { ...harness, unmount: () => fiber.dispose(), store, durable, asked, ran, addTool }
}

function types(events: readonly SessionEvent[]): string {
  return events
    .map(({ type }) => type)
    .filter(type => type !== 'assistant/chunk' && type !== 'agent/inbox/spliced')
    .join(' ')
}

const request = 'turn/start step/start user/message request/header request/context'
const called = `${request} assistant/message tool/call tool/start`

test('a request is not sent before its log is durable, a body not run, and an idle agent has lost nothing', async () => {
  const { ctx, agent, addTool, store, durable, asked, ran } = await setup([
    toolCall('look', {}, 'c1'),
    text('done'),
  ])
  addTool('look')
  const one = agent()
  const statuses: (readonly [status: AgentStatus, durable: string])[] = []
  ctx.on('agent/status', ({ status }) => statuses.push([status, durable()]))
  one.followup(say('go'))
  await one.whenIdle()
  const answered = `${called} tool/result step/end step/start`
  assert.deepEqual(ran, [called])
  assert.deepEqual(asked, [request, answered])
  assert.deepEqual(statuses.at(-1), ['idle', `${answered} assistant/message step/end turn/end`])
  assert.deepEqual(store.events(one.id), one.session.events)
  await ctx.dispose()
})

test('the start of a body is marked once for each call, after policy and right before the body', async () => {
  const calls = [
    { name: 'look', args: {}, id: 'c1' },
    { name: 'look', args: {}, id: 'c2' },
    { name: 'forbidden', args: {}, id: 'c3' },
  ]
  const { ctx, agent, addTool, store } = await setup([toolCalls(calls), text('done')])
  addTool('look')
  addTool('forbidden')
  ctx.tools.guard(exec => (exec.name === 'forbidden' ? 'no' : undefined))
  const one = agent()
  one.followup(say('go'))
  await one.whenIdle()
  const of = (type: string): readonly unknown[] =>
    store
      .events(one.id)
      .flatMap(event => (event.type === type ? [(event.data as { callId: unknown }).callId] : []))
  assert.deepEqual(of('tool/call'), ['c1', 'c2', 'c3'])
  assert.deepEqual(of('tool/start'), ['c1', 'c2'])
  const [start] = store.events(one.id).filter(event => event.type === 'tool/start')
  assert.deepEqual(start?.data, { turn: 1, step: 1, callId: 'c1' })
  assert.equal(start?.ignorable, true)
  await ctx.dispose()
})

test('a call that a tool makes rides on the barrier of the call that it serves', async () => {
  const { ctx, agent, addTool, store } = await setup([toolCall('outer', {}, 'c1'), text('done')])
  addTool('inner')
  ctx.tools.register(
    defineTool({
      name: 'outer',
      description: 'outer',
      parameters: {},
      async execute(_args, exec) {
        const before = store.writes
        const { token, signal, rootCallId } = exec
        await ctx.tools.execute({
          callId: exec.callId,
          rootCallId,
          name: 'inner',
          arguments: {},
          parent: token,
          signal,
        })
        return String(store.writes - before)
      },
    }),
  )
  const one = agent()
  one.followup(say('go'))
  await one.whenIdle()
  const [result] = store.events(one.id).filter(event => event.type === 'tool/result')
  assert.deepEqual(result?.data.message.content[0].content, [{ type: 'text', text: '0' }])
  assert.equal(store.events(one.id).filter(event => event.type === 'tool/start').length, 1)
  await ctx.dispose()
})

test('where the log cannot be made durable, no model is asked, and the agent works again once it can', async () => {
  const { ctx, agent, store, asked } = await setup([text('done')])
  const one = agent()
  store.failure = new PersistenceError('STORE_FAILED', 'session "agent-1" cannot be stored: no space is left')
  one.followup(say('go'))
  await one.whenIdle()
  assert.deepEqual(asked, [])
  const end = one.session.last('turn/end')
  assert.ok(end?.data.reason.kind === 'error')
  assert.match(end.data.reason.error.message, /no space is left/)
  assert.deepEqual(store.events(one.id), [])
  store.failure = undefined
  one.followup(say('again'))
  await one.whenIdle()
  assert.equal(asked.length, 1)
  assert.deepEqual(store.events(one.id), one.session.events)
  await ctx.dispose()
})

test('where the log cannot be made durable, no body runs, and the model is told', async () => {
  const { ctx, agent, addTool, store, ran } = await setup([toolCall('look', {}, 'c1'), text('done')])
  addTool('look')
  const one = agent()
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'tool/start') store.failure = new Error('no space is left')
    if (event.type === 'tool/result') store.failure = undefined
  })
  one.followup(say('go'))
  await one.whenIdle()
  assert.deepEqual(ran, [])
  const result = one.session.last('tool/result')
  assert.deepEqual(result?.data.message.content[0].content, [
    { type: 'text', text: 'Error: no space is left' },
  ])
  assert.equal(one.session.last('turn/end')?.data.reason.kind, 'completed')
  await ctx.dispose()
})

test('a call that is cancelled while it waits for the disk is not started', async () => {
  const { ctx, agent, addTool, ran } = await setup([toolCall('look', {}, 'c1'), text('done')])
  addTool('look')
  const one = agent()
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'tool/start') one.cancel({ kind: 'user' })
  })
  one.followup(say('go'))
  await one.whenIdle()
  assert.deepEqual(ran, [])
  assert.equal(one.session.last('tool/result')?.data.error?.code, 'ABORTED_BEFORE_DISPATCH')
  await ctx.dispose()
})

test('a request that is cancelled while it waits for the disk is not sent', async () => {
  const { ctx, agent, asked } = await setup([text('done')])
  const one = agent()
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'request/context') queueMicrotask(() => one.cancel({ kind: 'user' }))
  })
  one.followup(say('go'))
  await one.whenIdle()
  assert.deepEqual(asked, [])
  assert.equal(one.session.last('turn/end')?.data.reason.kind, 'aborted')
  await ctx.dispose()
})

test('requests and calls of nobody, or of a session that is not kept, pass', async () => {
  const { ctx, addTool, store, adapter } = await setup([text('one'), text('two')])
  addTool('look')
  const { signal } = new AbortController()
  for (const sessionId of [undefined, SessionId('nobody')]) {
    const options = { provider: 'mock', model: 'mock', messages: [say('hello')] }
    const stream = ctx.llm.stream(sessionId === undefined ? options : { ...options, sessionId })
    const chunks = await Array.fromAsync(stream)
    assert.equal(chunks.at(-1)?.type, 'finish')
  }
  const result = await ctx.tools.execute({ callId: 'c1' as never, name: 'look', arguments: {}, signal })
  assert.equal(result.isError, false)
  assert.equal(store.writes, 0)
  assert.equal(adapter.requests.length, 2)
  await ctx.dispose()
})

test('everything that the store registered goes with it', async () => {
  const { ctx, agent, store, unmount } = await setup([text('one'), text('two')])
  const one = agent()
  one.followup(say('go'))
  await one.whenIdle()
  const { length } = store.events(one.id)
  await unmount()
  assert.equal(ctx.get('sessionPersistence'), undefined)
  one.followup(say('again'))
  await one.whenIdle()
  assert.equal(one.session.last('turn/end')?.data.reason.kind, 'completed')
  assert.equal(store.events(one.id).length, length)
  await ctx.dispose()
})
