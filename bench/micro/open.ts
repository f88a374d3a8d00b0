import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import { Context } from '@dsh/harness/kernel'
import { storeJsonl } from '@dsh/harness/plugins/store-jsonl'
import { SessionStore } from '@dsh/harness/session'
import { resultFact } from '@dsh/harness/testing'
import { report } from '../figure.ts'
import { liveBytes } from '../measure.ts'

/** `ls` opens no log: what it takes is the program. */
const commands: readonly (readonly string[])[] = [
  ['ls'],
  ['cat', 's'],
  ['at', 's', '10'],
  ['show', 's'],
  ['verify', 's'],
]

const logBytes = 200e6
const textBytes = 40_000
const id = SessionId('s')

async function withStore(root: string): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root: join(root, 'sessions') })
  return ctx
}

/** Writes results whose text hardly gets smaller by compression. */
async function write(root: string): Promise<void> {
  const ctx = await withStore(root)
  const session = ctx.sessions.create(id, { meta: { cwd: '/srv' } })
  for (let at = 0; at < logBytes / textBytes; at++) {
    const text = randomBytes((textBytes * 3) / 4).toString('base64')
    session.append('tool/result', resultFact(`c${at}`, text), { surfaceOp: 'append' })
    if (at % 100 === 0) await ctx.sessions.flush(session)
  }
  await ctx.dispose()
}

/** Opens the log, and tells what that took at most and what of it is left. */
async function open(root: string): Promise<void> {
  const ctx = await withStore(root)
  const before = { live: liveBytes(), rss: process.memoryUsage().rss }
  const session = await ctx.sessionPersistence.view(id)
  const peak = process.resourceUsage().maxRSS * 1024 - before.rss
  const shown = liveBytes() - before.live
  process.send?.({ peak, shown, length: session.length })
  await ctx.dispose()
}

/** The same for a look at each event in turn. */
async function stream(root: string): Promise<void> {
  const ctx = await withStore(root)
  const before = process.memoryUsage().rss
  let length = 0
  for await (const { events } of ctx.sessionPersistence.stream(id)) length += events.length
  process.send?.({ peak: process.resourceUsage().maxRSS * 1024 - before, shown: 0, length })
  await ctx.dispose()
}

const jobs: Readonly<Record<string, (root: string) => Promise<void>>> = { write, open, stream }

interface Taken {
  readonly peak: number
  readonly shown: number
  readonly length: number
}

async function inProcess(job: string, root: string): Promise<Taken | undefined> {
  const child = fork(import.meta.filename, [job, root], {
    execArgv: ['--conditions=dsh-source', '--expose-gc'],
  })
  let taken: Taken | undefined
  child.on('message', message => (taken = message as Taken))
  await once(child, 'exit')
  return taken
}

const tellPeak = `process.on('exit', () => process.send(process.resourceUsage().maxRSS * 1024))`

/** Runs `dsh session` with what it prints thrown away, and gives what its process held at most. */
async function peakOf(words: readonly string[], root: string): Promise<number> {
  const child = fork(join(import.meta.dirname, '../../packages/cli/bin.js'), ['session', ...words], {
    execArgv: ['--import', `data:text/javascript,${encodeURIComponent(tellPeak)}`],
    env: { ...process.env, DSH_HOME: root },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  let peak = Number.NaN
  child.on('message', message => (peak = Number(message)))
  await once(child, 'exit')
  return peak
}

async function main(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'dsh-bench-'))
  try {
    await inProcess('write', root)
    const opened = await inProcess('open', root)
    const streamed = await inProcess('stream', root)
    if (opened === undefined || streamed === undefined) throw new Error('a process ended without a figure')
    const name = 'opening a log of 200 MB'
    report({
      name: `${name}: peak against what it shows`,
      value: opened.peak / opened.shown,
      unit: '×',
      of: 'memory',
      budget: 3,
    })
    report({ name: `${name}: shown`, value: opened.shown, unit: 'bytes', of: 'memory' })
    report({ name: 'streaming it: peak', value: streamed.peak, unit: 'bytes', of: 'memory' })
    for (const words of commands) {
      const value = await peakOf(words, root)
      report({ name: `dsh session ${words.join(' ')}: peak`, value, unit: 'bytes', of: 'memory' })
    }
  } finally {
    rmSync(root, { recursive: true })
  }
}

const [, , job, root] = process.argv
await (job === undefined || root === undefined ? main() : jobs[job]?.(root))
