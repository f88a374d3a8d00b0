import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { readSchema } from './schema-file.ts'

async function pipe(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-schema-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  // Opened for both, it has a writer from the start.
  return { path, writer: await open(path, 'r+') }
}

test('a schema may come through a pipe that takes its time', async t => {
  const { path, writer } = await pipe(t)
  const read = readSchema(path, new AbortController().signal)
  await writer.write('{"type": ')
  await turnOfTheLoop()
  await writer.write('"object"}')
  await writer.close()
  assert.deepEqual(await read, { type: 'object' })
})

test('a pipe that stays silent is given up with the signal', async t => {
  const { path, writer } = await pipe(t)
  const controller = new AbortController()
  const read = readSchema(path, controller.signal)
  await turnOfTheLoop()
  controller.abort(new Error('stopped by SIGINT'))
  await assert.rejects(read, /^Error: stopped by SIGINT$/)
  await writer.close()
})
