import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import { Context } from '@dsh/harness/kernel'
import { sessionQuery } from '@dsh/harness/plugins/session-query'
import { storeJsonl } from '@dsh/harness/plugins/store-jsonl'
import { SessionStore } from '@dsh/harness/session'
import { answerFact, logOf, resultFact, userFact } from '@dsh/harness/testing'
import type { Draft } from '@dsh/harness/testing'
import { report } from '../figure.ts'
import { cpuSince, medianOf, wallOf } from '../measure.ts'

const home = mkdtempSync(join(tmpdir(), 'dsh-bench-'))
const sessions = 300
const sessionBytes = 300_000

async function open(): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
  await ctx.plugin(sessionQuery, { path: join(home, 'cache', 'index.sqlite') })
  return ctx
}

/** Words that pack as those of programs and people do. */
function writer(): (length: number) => string {
  let state = 1
  const next = (below: number): number => (state = (state * 48_271) % 2_147_483_647) % below
  const words = Array.from({ length: 20_000 }, () => next(36 ** 6).toString(36))
  return length => {
    let text = ''
    while (text.length < length) text += `${words[next(words.length)]} `
    return text
  }
}

const text = writer()

function turn(number: number): Draft[] {
  const place = { turn: number, step: 1 }
  return [
    ['turn/start', { turn: number }],
    ['user/message', userFact(text(200), `u${number}`)],
    ['step/start', place],
    ['assistant/message', answerFact(text(1500), [`c${number}`], place)],
    ['tool/result', resultFact(`c${number}`, text(12_000), place)],
    ['step/end', place],
    ['turn/end', { turn: number, reason: { kind: 'completed' } }],
  ]
}

async function write(ctx: Context, index: number): Promise<void> {
  const header = { version: 0, id: SessionId(`s${index}`), createdAt: index, cwd: `/srv/${index % 10}` }
  const store = ctx.sessionPersistence
  await store.create(header)
  let length = 0
  for (let number = 1; length === 0 || statSync(store.locate(header) ?? '').size < sessionBytes; number++) {
    const events = logOf(...turn(number)).map(event => ({ ...event, seq: event.seq + length }))
    await store.append(header.id, events)
    length += events.length
  }
}

async function firstPage(): Promise<() => Promise<void>> {
  const ctx = await open()
  return async () => {
    const { rows } = await ctx.sessionQuery.overview({ limit: 20 })
    if (rows.length !== 20) throw new Error(`${rows.length} rows`)
    await ctx.dispose()
  }
}

function forgetIndex(): void {
  rmSync(join(home, 'cache'), { recursive: true, force: true })
}

const ctx = await open()
for (let index = 0; index < sessions; index++) await write(ctx, index)
await ctx.dispose()

report({
  name: `first page of ${sessions} long sessions, no index yet`,
  value: await wallOf(async () => {
    forgetIndex()
    return await firstPage()
  }),
  unit: 'ms',
  of: 'wall',
  budget: 300,
})

const before = process.cpuUsage()
const indexing = await open()
await indexing.sessionQuery.searchSessions({ query: 'nothing at all' })
report({
  name: 'reading a long session into the index',
  value: cpuSince(before) / 1000 / sessions,
  unit: 'ms',
  of: 'CPU',
})

report({
  name: `search of ${sessions} long sessions`,
  value: await wallOf(() => () => indexing.sessionQuery.searchSessions({ query: text(8).trim() })),
  unit: 'ms',
  of: 'wall',
})
await indexing.dispose()

report({
  name: `first page of ${sessions} long sessions`,
  value: await wallOf(firstPage),
  unit: 'ms',
  of: 'wall',
  budget: 100,
})

const bin = join(import.meta.dirname, '../../packages/cli/bin.js')

function processMs(args: readonly string[]): number {
  const env = { ...process.env, DSH_HOME: home }
  const times = Array.from({ length: 7 }, () => {
    const start = performance.now()
    const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    return performance.now() - start
  })
  return medianOf(times)
}

report({ name: '… as a whole process', value: processMs([bin, 'session', 'ls']), unit: 'ms', of: 'wall' })
report({ name: 'bare node', value: processMs(['-e', '0']), unit: 'ms', of: 'wall' })
rmSync(home, { recursive: true, force: true })
