import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { readContent } from './import.ts'
import { lookOf } from './walk.ts'

function setup(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'content-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const file = join(root, 'f')
  writeFileSync(file, 'hello\n', { mode: 0o644 })
  const seen = lookOf(lstatSync(file))
  return { root, file, read: (maxBytes = 100) => readContent(root, 'f', { seen, maxBytes }) }
}

test('a file is read whole, under the name that git gives its content', t => {
  const { read } = setup(t)
  const content = read()
  assert.ok(typeof content !== 'string')
  assert.equal(content.oid, 'ce013625030ba8dba906f756967f9e9ca394464a')
  assert.deepEqual([content.kind, String(content.bytes)], ['100644', 'hello\n'])
})

test('what a file became since it was seen is told, and never followed or waited for', t => {
  const { root, file, read } = setup(t)
  appendFileSync(file, 'x'.repeat(200))
  assert.equal(read(), 'too-large')
  rmSync(file)
  assert.equal(read(), 'gone')
  symlinkSync('/etc/hostname', file)
  assert.equal(read(), 'special')
  rmSync(file)
  mkdirSync(file)
  assert.equal(read(), 'special')
  rmSync(file, { recursive: true })
  execFileSync('mkfifo', [file], { timeout: 5000, killSignal: 'SIGKILL' })
  assert.equal(read(), 'special')
  rmSync(root, { recursive: true })
  assert.equal(read(), 'gone')
})
