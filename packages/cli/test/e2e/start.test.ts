import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { bench, sessionIn } from './dsh.ts'

const root = join(import.meta.dirname, '../../../..')
const run = promisify(execFile)

test('npm start finds and fixes the bug of a copy, and prints how to go on', async t => {
  const { env, dsh } = bench(t)
  const sample = join(root, 'examples/sample-workspace/src/stats.js')
  const before = readFileSync(sample, 'utf8')
  const { stdout, stderr } = await run('npm', ['start'], { cwd: root, env: env as NodeJS.ProcessEnv })
  assert.match(
    stdout,
    /Fixed: `median` in src\/stats\.js sorted numbers as text\. Before: 3 of 4 tests pass\. Now: 4 of 4 tests pass\.\n/,
  )
  const steps = [...stderr.matchAll(/^[●✗] (.*) \([\d.]+ m?s(?:, (exit \d))?\)$/gm)].map(([, what, exit]) => [
    what,
    exit,
  ])
  assert.deepEqual(steps, [
    ['read .', undefined],
    ['read package.json', undefined],
    ['bash node --test --test-reporter=tap', 'exit 1'],
    ['read src/stats.js', undefined],
    ['edit src/stats.js', undefined],
    ['bash node --test --test-reporter=tap', 'exit 0'],
  ])
  assert.match(stderr, /^ {2}│ # pass 4$/m)
  assert.match(stderr, / · changed src\/stats\.js · go on: /)
  assert.equal(readFileSync(sample, 'utf8'), before)

  const id = sessionIn(stderr)
  assert.match((await dsh(['session', 'show', id])).stdout, /^› The tests in this folder fail\./)
  const goOn = /go on: (.*) "…"$/m.exec(stderr)?.[1] ?? ''
  const again = await run('sh', ['-c', `${goOn} --yes "and now?"`], {
    cwd: root,
    env: env as NodeJS.ProcessEnv,
  })
  assert.match(again.stdout, /^There is nothing to fix: 4 of 4 tests pass\./)
})

test('the demo asks like any model: what is to be asked for and nobody can be is refused', async t => {
  const { dsh, work } = bench(t)
  cpSync(join(root, 'examples/sample-workspace'), work, { recursive: true })
  await dsh(['permission', 'ask', 'node'])
  const { code, stdout } = await dsh(['run', 'fix the tests'])
  assert.equal(code, 4)
  assert.match(stdout, /^The tests could not be run: /)
})

test('a run that is interrupted in the middle of the demo goes on from the log', async t => {
  const { env, dsh, work } = bench(t)
  cpSync(join(root, 'examples/sample-workspace'), work, { recursive: true })
  const bin = join(root, 'packages/cli/bin.js')
  const child = spawn(process.execPath, [bin, 'run', '--yes', 'fix the tests'], {
    cwd: work,
    env: env as NodeJS.ProcessEnv,
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    if (stderr.includes('● bash')) child.kill('SIGKILL')
  })
  await new Promise(resolve => child.on('close', resolve))
  const { code, stdout } = await dsh(['run', '-c', '--yes', 'go on'])
  assert.equal(code, 0)
  assert.match(stdout, /4 of 4 tests pass/)
})
