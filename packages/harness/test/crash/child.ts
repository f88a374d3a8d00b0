import { writeFileSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import type { PluginObject } from '../../src/kernel/index.ts'
import { mountPersistence } from '../../src/plugins/persistence/index.ts'
import type { FileSystem, OpenFile } from '../../src/plugins/store-jsonl/index.ts'
import { localFileSystem } from '../../src/plugins/store-jsonl/local.ts'
import { watchMedium } from '../../src/testing/crash/ledger.ts'
import { userFact } from '../../src/testing/facts.ts'
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

/** Loaded where it is needed alone: a program that lives for a moment should start in one. */
async function runTurns(): Promise<void> {
  const turns = await import('./turns.ts')
  await turns.runTurns({ task, store: store(), journal, reach })
}

await { turns: runTurns, append: appendForever, resume: resumeOnce, hold }[task.role]()
if (task.points !== undefined) writeFileSync(task.points, passed.join('\n'))
standStill('end')
