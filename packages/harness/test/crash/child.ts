import { writeFileSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import { defineTool } from '../../src/core/tools/index.ts'
import { Context } from '../../src/kernel/index.ts'
import type { PluginObject } from '../../src/kernel/index.ts'
import { llmOpenAIChat } from '../../src/plugins/llm-openai-chat/index.ts'
import { mountPersistence } from '../../src/plugins/persistence/index.ts'
import { sessionProjections } from '../../src/plugins/session-projections/index.ts'
import type { FileSystem, OpenFile } from '../../src/plugins/store-jsonl/index.ts'
import { localFileSystem } from '../../src/plugins/store-jsonl/local.ts'
import { createHarness, say, userFact, watchMedium } from '../../src/testing/index.ts'
import { Journal } from './journal.ts'
import { openMedium } from './media.ts'
import type { MediumName } from './media.ts'

// The program that the gate kills. At the point it was told it writes the point's name into the marker and stands still.

export interface Task {
  readonly role: 'turns' | 'append' | 'resume' | 'hold'
  readonly medium: MediumName
  readonly home: string
  /** Where it stands still, or how the name of that place begins; at its end where absent. */
  readonly point?: string
  readonly marker: string
  readonly journal: string
  /** Where each point that is passed is written down. */
  readonly points?: string
  /** The provider. */
  readonly url?: string
}

const task = JSON.parse(process.argv[2] ?? '{}') as Task
const journal = new Journal(task.journal)
const id = SessionId('s1')
const passed: string[] = []

function reach(name: string): void {
  passed.push(name)
  if (name === task.point || name.startsWith(`${task.point} `)) standStill(name)
}

/** Nothing of this program runs any more, but for what the system does already. */
function standStill(name: string): void {
  // A killed program saves nothing at its end.
  flushCompileCache()
  writeFileSync(task.marker, name)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

function store(): PluginObject {
  return {
    name: 'store',
    inject: ['sessions'],
    apply(ctx) {
      const fs = withPoints(localFileSystem)
      mountPersistence(ctx, watchMedium(openMedium(task.medium, task.home, { fs }), journal), {
        writeBatchMaxDelayMs: 20,
      })
    },
  }
}

/** The same file system; every call that changes something can be stopped at. */
function withPoints(fs: FileSystem): FileSystem {
  let count = 0
  const before = (call: string): void => reach(`call ${++count} ${call}`)
  const changing = <A extends readonly unknown[], R>(call: string, run: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      before(call)
      return run(...args)
    }
  }
  const file = (open: OpenFile): OpenFile => ({
    ...open,
    write: changing('write', open.write),
    truncate: changing('truncate', open.truncate),
    sync: changing('sync', open.sync),
  })
  return {
    ...fs,
    async open(path, use) {
      if (use === 'create') before('create')
      return file(await fs.open(path, use))
    },
    mkdir: changing('mkdir', fs.mkdir),
    rmdir: changing('rmdir', fs.rmdir),
    link: changing('link', fs.link),
    rename: changing('rename', fs.rename),
    unlink: changing('unlink', fs.unlink),
    syncFolder: changing('syncFolder', fs.syncFolder),
  }
}

/** Two turns over the wire, with three calls of a tool. */
async function runTurns(): Promise<void> {
  const { ctx, agent } = await createHarness()
  const counts = new Map<string, number>()
  const reachNext = (name: string): void => {
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    reach(`${name} ${count}`)
  }
  // Outside the barrier of the store, which is mounted behind it.
  ctx.on('llm/stream', (_options, next) => {
    reachNext('before the barrier of request')
    return next()
  })
  await ctx.plugin(store())
  await ctx.plugin(sessionProjections, { folder: join(task.home, 'projections'), writeEveryEvents: 10 })
  await ctx.plugin(llmOpenAIChat, { env: { DEEPSEEK_BASE_URL: task.url, DEEPSEEK_API_KEY: 'sk-mock' } })
  watchLoop(ctx, reachNext)
  const one = agent(id, { provider: 'deepseek', model: 'deepseek-flash' })
  for (const prompt of ['go', 'go on']) {
    one.followup(say(prompt))
    reachNext('followup')
    await one.whenIdle()
    journal.confirm(one.session.header, one.session.length)
    reachNext('idle')
  }
}

function watchLoop(ctx: Context, reachNext: (name: string) => void): void {
  ctx.on('session/event', (_session, event) => {
    const isClaim = event.type === 'agent/inbox/spliced' && (event.data.removedCount ?? 0) > 0
    reachNext(isClaim ? 'claim' : event.type)
  })
  ctx.on('agent/pre-step', async (step, next) => {
    const result = await next()
    reachNext('pre-step')
    await ctx.sessions.flush(step.agent.session)
    reachNext('pre-step flush')
    return result
  })
  ctx.on('llm/stream', (options, next) => {
    const session = options.sessionId === undefined ? undefined : ctx.sessions.get(options.sessionId)
    if (session !== undefined) journal.request(session.header, session.length, options)
    reachNext('dispatch')
    const stream = next()
    return (async function* () {
      for await (const chunk of stream) {
        reachNext('chunk of the wire')
        yield chunk
      }
    })()
  })
  ctx.on('tools/execute', (_execution, next) => {
    reachNext('flushed call')
    return next()
  })
  ctx.tools.register(
    defineTool({
      name: 'work',
      description: 'Works.',
      parameters: {},
      execute(_args, exec) {
        reachNext('body')
        if (exec.agent !== undefined) journal.effect(exec.agent.session.header, exec.callId)
        reachNext('effect')
        return 'worked'
      },
    }),
  )
}

async function openStore(): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(store())
  return ctx
}

async function resume(ctx: Context): Promise<Session> {
  const { session } = await ctx.sessionPersistence.prepare(id)
  ctx.sessions.enter(session)
  ctx.sessions.announce(session)
  return session
}

/** Appends without end, in batches of all sizes. */
async function appendForever(): Promise<void> {
  const ctx = await openStore()
  const isStored = (await ctx.sessionPersistence.list()).length > 0
  const session = isStored ? await resume(ctx) : ctx.sessions.create(id, { meta: { cwd: '/srv/project' } })
  for (let batch = 1; ; batch += 1) {
    for (let count = batch % 5; count >= 0; count -= 1) {
      const size = batch % 29 === 0 ? 70_000 : (batch * 131) % 700
      session.append('user/message', userFact(`${session.seq} ${'x'.repeat(size)}`), { surfaceOp: 'append' })
    }
    if (batch % 7 === 0) await session.artifacts.put(Buffer.from(`picture ${session.seq}`), 'image/png')
    await ctx.sessions.flush(session)
    journal.confirm(session.header, session.length)
    if (batch === 1) writeFileSync(task.marker, 'appending')
  }
}

/** Resumes the session, and goes on with it. */
async function resumeOnce(): Promise<void> {
  const ctx = await openStore()
  const session = await resume(ctx)
  session.append('user/message', userFact('resumed'), { surfaceOp: 'append' })
  await ctx.sessions.flush(session)
  await ctx.dispose()
}

/** Begins or resumes the session; then appends an event for each line of standard input, and says how it went. */
async function hold(): Promise<void> {
  const tell = (line: string): void => void writeSync(1, `${line}\n`)
  const ctx = await openStore()
  const append = async (session: Session, text: string): Promise<void> => {
    session.append('user/message', userFact(text), { surfaceOp: 'append' })
    await ctx.sessions.flush(session)
    tell(String(session.length))
  }
  const failed = (error: { readonly code?: string }): void => tell(`error ${error.code}`)
  const isStored = (await ctx.sessionPersistence.list()).length > 0
  const session = isStored
    ? await resume(ctx).catch(failed)
    : ctx.sessions.create(id, { meta: { cwd: '/srv/project' } })
  if (session === undefined) return
  await append(session, `from ${process.pid}`).catch(failed)
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'stop') break
    await append(session, line).catch(failed)
  }
  await ctx.dispose()
  process.exit()
}

await { turns: runTurns, append: appendForever, resume: resumeOnce, hold }[task.role]()
if (task.points !== undefined) writeFileSync(task.points, passed.join('\n'))
standStill('end')
