import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { isChunkRow, SessionStore, unpackRow } from '../../src/core/session/index.ts'
import type { ChunkRow } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { logOf, textFact, userFact } from '../../src/testing/index.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/reference/log-format.md'), 'utf8')
const id = SessionId('s1')

/** The first block of code in this language. */
function codeIn(language: string): string {
  return new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] ?? ''
}

/** A log that was written in three goes, with a run of chunks and a text of 70,000 signs. */
async function setup(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'log-format-'))
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root })
  t.after(async () => {
    await ctx.dispose()
    rmSync(root, { recursive: true })
  })
  const header = { version: 0, id, createdAt: 1, cwd: '/srv' }
  const events = logOf(
    ['user/message', userFact('one')],
    ['assistant/chunk', textFact('a')],
    ['assistant/chunk', textFact('b')],
    ['assistant/chunk', textFact('c')],
    ['user/message', userFact('x'.repeat(70_000), 'long')],
    ['user/message', userFact('two')],
  )
  const { sessionPersistence } = ctx
  await sessionPersistence.create(header)
  for (const [from, to] of [
    [0, 1],
    [1, 5],
    [5, 6],
  ] as const)
    await sessionPersistence.append(id, events.slice(from, to))
  return { root, header, events, path: sessionPersistence.locate(header) ?? '' }
}

/** The events that a reader of the page makes of the decoded text, texts beside the log left out. */
function eventsIn(text: string): readonly unknown[] {
  const [first, ...lines] = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as object)
  assert.deepEqual(first, { type: 'session', version: 0, id, createdAt: 1, cwd: '/srv', toolStart: true })
  return lines.flatMap(line => {
    if ('firstSeq' in line) return []
    if (!isChunkRow(line)) return [line]
    const events = unpackRow(line as ChunkRow)
    assert.ok(typeof events !== 'string')
    return events
  })
}

function assertAll(found: readonly unknown[], events: readonly SessionEvent[]): void {
  const short = found.map(event => ('spill' in (event as object) ? (event as SessionEvent).seq : event))
  assert.deepEqual(short, events.with(4, 4 as never))
}

test('the loop on the page of the log format prints every event of every frame', async t => {
  const { root, path, events } = await setup(t)
  const script = join(root, 'read.mjs')
  writeFileSync(script, codeIn('js'))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, path], {
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
  })
  assert.equal(status, 0, stderr)
  assertAll(eventsIn(stdout), events)
})

test('so does zstdcat', async t => {
  const { path, events } = await setup(t)
  const [command = '', ...args] = codeIn('sh').trim().split(' ')
  if (spawnSync(command, ['--version']).status !== 0) return t.skip(`${command} is not installed`)
  const { status, stdout } = spawnSync(command, args, {
    cwd: join(path, '..'),
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
  })
  assert.equal(status, 0)
  assertAll(eventsIn(stdout), events)
})
