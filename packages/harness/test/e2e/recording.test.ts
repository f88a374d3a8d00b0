import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { testRecording } from '@dsh/harness/testing'

// Written by version 1 of the format: what was accepted once is accepted for ever.
const file = new URL('../fixtures/version-1.recording.jsonl', import.meta.url)

testRecording(file)

test('a recording whose request is another one fails its test, and the difference is told', t => {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-recording-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const changed = readFileSync(file, 'utf8').replace('"text":"two"}]}', '"text":"another prompt"}]}')
  writeFileSync(join(folder, 'changed.recording.jsonl'), changed)
  const script = `
    import { testRecording } from '@dsh/harness/testing'
    testRecording(${JSON.stringify(join(folder, 'changed.recording.jsonl'))})
  `
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout } = spawnSync(
    process.execPath,
    ['--conditions=dsh-source', '--input-type=module', '--eval', script],
    { cwd: import.meta.dirname, env, encoding: 'utf8', timeout: 30_000, killSignal: 'SIGKILL' },
  )
  assert.equal(status, 1, stdout)
  assert.match(stdout, /request 2\.1 is another one from its message \d+ on/)
  assert.match(stdout, /- .*another prompt/)
})
