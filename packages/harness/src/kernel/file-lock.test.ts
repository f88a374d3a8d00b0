import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { underFileLock } from './file-lock.ts'

function place(t: TestContext): string {
  const folder = fs.mkdtempSync(join(tmpdir(), 'dsh-lock-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  return join(folder, 'made/file')
}

test('jobs of one file run one after another, and leave nothing beside it', async t => {
  const path = place(t)
  let running = 0
  const job = async (): Promise<boolean> => {
    running += 1
    const isAlone = running === 1
    await new Promise(setImmediate)
    running -= 1
    return isAlone
  }
  const all = await Promise.all(Array.from({ length: 5 }, () => underFileLock(path, job)))
  assert.deepEqual(new Set(all), new Set([true]))
  const failure = new Error('no luck')
  await assert.rejects(
    underFileLock(path, () => Promise.reject(failure)),
    failure,
  )
  assert.deepEqual(fs.readdirSync(join(path, '..')), [])
})

test('the lock of a program that is dead is taken over', async t => {
  const path = place(t)
  await underFileLock(path, async () => {})
  fs.writeFileSync(`${path}.lock`, '999999999')
  assert.equal(await underFileLock(path, async () => 'done'), 'done')
  assert.deepEqual(fs.readdirSync(join(path, '..')), [])
})

test('the lock of a living program, and one that names nobody, stay, and the job does not run', async t => {
  const path = place(t)
  await underFileLock(path, async () => {})
  t.mock.method(Math, 'random', () => 0)
  for (const owner of [String(process.pid), '', '-1', 'nobody']) {
    fs.writeFileSync(`${path}.lock`, owner)
    const job = t.mock.fn(async () => {})
    await assert.rejects(underFileLock(path, job), {
      code: 'FILE_LOCKED',
      message: `"${path}" is being changed by process ${owner}; if there is none, remove "${path}.lock"`,
    })
    assert.equal(job.mock.callCount(), 0)
    assert.deepEqual(fs.readdirSync(join(path, '..')), ['file.lock'])
  }
})
