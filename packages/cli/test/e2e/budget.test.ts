import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, jsonLines } from './dsh.ts'

const call = () => reply.toolCall('read', { file_path: `f${Math.random()}` })

test('a run stops before the request that its limit does not allow, says why and fails', async t => {
  const { dsh, provider } = bench(t)
  const { requests } = await provider({ fallback: call })
  const { code, stderr } = await dsh(['run', '--max-turns', '2', 'go'])
  assert.equal(code, 1)
  assert.match(stderr, /\nstopped: the limit of 2 steps of the run is reached\nsession \S+ · .* go on: /)
  assert.equal(requests.length, 2)
})

test('money stops a run at the price of its model, and --json tells it as the error', async t => {
  const { dsh, provider } = bench(t)
  const { requests, ledger } = await provider({ fallback: () => call() })
  const { code, stdout } = await dsh(['run', '--json', '--max-cost', '0.0005', 'go'])
  const { result } = jsonLines(stdout)
  const { code: name, message } = result['error'] as { code: string; message: string }
  assert.equal(code, 1)
  assert.equal(name, 'STOPPED')
  assert.match(message, /^the limit of 0\.0005 USD of the run is reached: 0\.\d+ USD were spent$/)
  const { inputTokens, cacheReadTokens, outputTokens } = ledger.total
  const least = (inputTokens + cacheReadTokens * 0.02 + outputTokens * 4) / 1_000_000 / 7
  const spent = Number(/reached: (\S+) USD/.exec(message)?.[1])
  // Twice as much in the hours of the peak, and what was spent last may lie on both sides of such an hour.
  assert.ok(spent >= least * 0.999 && spent <= least * 2.001, `${spent} and ${least}`)
  assert.ok(requests.length >= 1)
})

test('a limit of money on a model without a price asks nothing; a price of one own mends it', async t => {
  const { dsh, provider, home } = bench(t)
  const { requests } = await provider({ script: [reply.text('done')] })
  const run = ['run', '-m', 'deepseek/other', '--max-cost', '1', 'go']
  const refused = await dsh(run)
  assert.equal(refused.code, 1)
  assert.match(
    refused.stderr,
    /\nstopped: a limit of money needs the price of deepseek\/other, which is not known: set it as prices of budget in dsh\.yml\n/,
  )
  assert.equal(requests.length, 0)
  writeFileSync(
    join(home, 'dsh.yml'),
    '- id: budget\n  config:\n    prices:\n      deepseek/other: {currency: USD, input: 1, output: 2, cacheRead: 0}\n',
  )
  const { code, stdout } = await dsh(run)
  assert.deepEqual([code, stdout], [0, 'done\n'])
})

test('the time of a run also ends a command', async t => {
  const { dsh, provider } = bench(t)
  await provider({ fallback: reply.toolCall('bash', { command: 'sleep 60', description: 'Wait' }) })
  const { code, stderr } = await dsh(['run', '--yes', '--permission', 'full-access', '--max-time', '1', 'go'])
  assert.equal(code, 1)
  assert.match(stderr, /\nstopped: the limit of 1 second of the run is reached\n/)
})

test('limits that are no numbers are refused with one that is', async t => {
  const { dsh } = bench(t)
  for (const [name, value] of [
    ['max-cost', '0'],
    ['max-cost', 'cheap'],
    ['max-tokens', '1.5'],
    ['max-turns', '-1'],
    ['max-time', 'Infinity'],
  ] as const) {
    const { code, stderr } = await dsh(['run', `--${name}=${value}`, 'go'])
    assert.equal(code, 2)
    assert.match(
      stderr,
      new RegExp(`^error INVALID_NUMBER: --${name} is .*found "${value}"\n  dsh run --${name} `),
    )
  }
})
