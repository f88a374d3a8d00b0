import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SessionId } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { logOf, resultFact, userFact } from '../../src/testing/index.ts'
import type { Draft } from '../../src/testing/index.ts'

const childPath = fileURLToPath(new URL('session-query-child.ts', import.meta.url))
const limitMs = 100_000

function setup(t: TestContext) {
  const home = mkdtempSync(join(tmpdir(), 'session-query-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const start = (role: 'write' | 'search', flags: readonly string[] = []) => {
    const args = ['--conditions=dsh-source', ...flags, childPath, role, home]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    const limit = setTimeout(() => child.kill('SIGKILL'), limitMs)
    const ended = once(child, 'exit').then(([code]: unknown[]) => {
      clearTimeout(limit)
      return code
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    /** The next line that begins so. */
    const said = async (start: string): Promise<string> => {
      for (let next = await lines.next(); next.done !== true; next = await lines.next())
        if (next.value.startsWith(start)) return next.value
      throw new Error(`the program ended without "${start}"`)
    }
    return { child, ended, said, ask: (text: string) => child.stdin.write(`${text}\n`) }
  }
  const put = async (id: string, batches: readonly (readonly Draft[])[]): Promise<void> => {
    const ctx = new Context()
    await ctx.plugin(SessionStore)
    await ctx.plugin(storeJsonl, { root: join(home, 'sessions') })
    const header = { version: 0, id: SessionId(id), createdAt: 1 }
    await ctx.sessionPersistence.create(header)
    let length = 0
    for (const batch of batches) {
      const events = logOf(...batch).map(event => ({ ...event, seq: event.seq + length }))
      await ctx.sessionPersistence.append(header.id, events)
      length += batch.length
    }
    await ctx.dispose()
  }
  return { home, start, put, path: join(home, 'cache', 'index.sqlite') }
}

function assertSound(path: string, documents: number): void {
  const db = new DatabaseSync(path)
  try {
    assert.deepEqual({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
    const count = (table: string) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
    assert.deepEqual([count('documents'), count('words_docsize')], [documents, documents])
  } finally {
    db.close()
  }
}

test('two programs search while a third one writes, and both find everything in the end', async t => {
  const { start, path } = setup(t)
  const searchers = [start('search'), start('search')]
  for (const { said } of searchers) await said('ready')
  const writer = start('write')
  await writer.said('10')
  const counts = await Promise.all(
    searchers.map(async ({ ask, said }) => {
      const seen: number[] = []
      while (writer.child.exitCode === null) {
        ask('needle')
        seen.push(Number((await said('found')).split(' ')[1]))
      }
      return seen
    }),
  )
  assert.equal(await writer.ended, 0)
  for (const seen of counts)
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
    )
  for (const { ask, said, child, ended } of searchers) {
    ask('needle')
    assert.equal(await said('found'), 'found 60 left 0')
    child.stdin.end()
    assert.equal(await ended, 0)
  }
  assertSound(path, 60)
})

test('a program that is killed while it reads logs leaves an index that the next one completes', async t => {
  const { start, put, path } = setup(t)
  const sessions = 12
  for (let index = 0; index < sessions; index++)
    await put(`s${index}`, [[['user/message', userFact(`needle ${index} ${'hay and straw '.repeat(4000)}`)]]])
  for (const progress of ['reading 1 ', 'reading 0 ', 'reading 3 ']) {
    const { child, said, ask, ended } = start('search')
    ask('needle')
    await said(progress)
    child.kill('SIGKILL')
    await ended
  }
  const { said, ask, child } = start('search')
  ask('needle')
  assert.equal(await said('found'), `found ${sessions} left 0`)
  child.stdin.end()
  assertSound(path, sessions)
})

test('a log larger than the memory of the program is searched', async t => {
  const { start, put } = setup(t)
  const text = Array.from({ length: 4000 }, (_, at) => `word${at}`).join(' ')
  const results = (from: number): Draft[] =>
    Array.from({ length: 100 }, (_, at) => [
      'tool/result',
      resultFact(`c${from + at}`, `${from + at} ${text}`),
    ])
  await put('big', [
    [['user/message', userFact('needle at the start')]],
    ...Array.from({ length: 14 }, (_, at) => results(at * 100)),
    [['user/message', userFact('needle at the end')]],
  ])
  assert.ok(1400 * text.length > 45_000_000)
  const { said, ask, child, ended } = start('search', ['--max-old-space-size=32'])
  ask('needle')
  assert.equal(await said('found'), 'found 2 left 0')
  child.stdin.end()
  assert.equal(await ended, 0)
})
