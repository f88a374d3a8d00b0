import { appendFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import { defineTool } from '../../src/core/tools/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { text, toolCalls } from '../../src/plugins/llm-scripted/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { storeSqlite } from '../../src/plugins/store-sqlite/index.ts'
import { createHarness, say, userFact } from '../../src/testing/index.ts'

// The program that the store's process tests start, stop and kill. It says what it did on standard output, unbuffered.

const id = SessionId('s1')
const [role = '', root = '', marks = ''] = process.argv.slice(2)

function tell(line: string): void {
  writeSync(1, `${line}\n`)
}

/** A file is a database, a folder one of logs. */
async function mountStore(
  ctx: Context,
  options: { readonly writeBatchMaxDelayMs?: number } = {},
): Promise<void> {
  if (root.endsWith('.sqlite')) await ctx.plugin(storeSqlite, { path: root, ...options })
  else await ctx.plugin(storeJsonl, { root, ...options })
}

/** Resumes or begins the session. */
async function openSession(ctx: Context): Promise<Session> {
  const isStored = (await ctx.sessionPersistence.list()).length > 0
  const session = isStored
    ? (await ctx.sessionPersistence.prepare(id)).session
    : ctx.sessions.prepare(id, { meta: { cwd: '/srv' } })
  ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  return session
}

/** Appends without end; tells how many events are durable after each flush. */
async function appendForever(): Promise<void> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await mountStore(ctx, { writeBatchMaxDelayMs: 1 })
  const session = await openSession(ctx)
  for (let batch = 1; ; batch += 1) {
    for (let count = batch % 5; count >= 0; count -= 1) {
      const size = batch % 17 === 0 ? 70_000 : (batch * 131) % 3000
      session.append('user/message', userFact(`${session.seq} ${'x'.repeat(size)}`), { surfaceOp: 'append' })
    }
    const { length } = session
    await ctx.sessions.flush(session)
    tell(String(length))
  }
}

/** Opens the session; then appends an event for each line of standard input. */
async function hold(): Promise<void> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await mountStore(ctx)
  const session = await openSession(ctx)
  const append = async (text: string): Promise<void> => {
    session.append('user/message', userFact(text), { surfaceOp: 'append' })
    await ctx.sessions.flush(session)
    tell(String(session.length))
  }
  await append('first')
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'stop') return ctx.dispose()
    await append(line).catch((error: Error & { code?: string }) =>
      tell(`error ${error.code ?? error.message}`),
    )
  }
}

/** Runs one turn with two exclusive tools and tells each place where a test may kill it; there it waits for ever. */
async function runTurn(place: string): Promise<void> {
  const calls = ['c1', 'c2'].map(callId => ({ name: 'work', args: {}, id: callId }))
  const { ctx, agent } = await createHarness([toolCalls(calls), text('done')], { maxParallelToolCalls: 1 })
  const reach = async (name: string): Promise<void> => {
    if (name !== place) return
    tell(`at ${name}`)
    await new Promise(() => setInterval(() => {}, 1000))
  }
  await mountStore(ctx)
  ctx.on('llm/stream', (_options, next) => {
    const stream = next()
    return (async function* () {
      await reach('request')
      yield* stream
    })()
  })
  ctx.on('tools/pre-execute', async (execution, next) => {
    if (execution.agent !== undefined) await ctx.sessions.flush(execution.agent.session)
    await reach(`policy ${execution.callId}`)
    return next()
  })
  ctx.tools.register(
    defineTool({
      name: 'work',
      description: 'work',
      parameters: {},
      async execute(_args, exec) {
        await reach(`start ${exec.callId}`)
        appendFileSync(marks, `${exec.callId}\n`)
        await reach(`end ${exec.callId}`)
        return 'ok'
      },
    }),
  )
  const one = agent(String(id))
  one.followup(say('go'))
  await one.whenIdle()
  await reach('idle')
}

switch (role) {
  case 'append':
    await appendForever()
    break
  case 'hold':
    await hold().catch((error: Error & { code?: string }) => tell(`error ${error.code ?? error.message}`))
    break
  default:
    await runTurn(role)
}
