import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, preload } from './dsh.ts'
import type { Bench } from './dsh.ts'
import { filesBelow, plainBytes } from './plain-files.ts'

const canary = 'CANARY7f3a91c04e'

/** Nothing that `place` printed or wrote holds the canary, but for the files that a person put it into. */
function assertKept({ root }: Bench, outputs: readonly string[], own: readonly string[] = []): void {
  for (const output of outputs) assert.ok(!output.includes(canary), output)
  for (const file of filesBelow(root))
    if (!own.includes(file)) assert.ok(!plainBytes(file).includes(canary), file)
}

async function said(place: Bench, commands: readonly (readonly string[])[], env = {}): Promise<string[]> {
  const outputs: string[] = []
  for (const args of commands) {
    // Waits between tries are short.
    const { stdout, stderr } = await place.dsh(args, {
      env: { ...preload({ DSH_TEST_HURRY: '20' }), ...env },
    })
    outputs.push(stdout, stderr)
  }
  return outputs
}

const looks = [
  ['models'],
  ['doctor'],
  ['doctor', '--json'],
  ['plugin', 'why'],
  ['plugin', 'why', 'llm-openai-chat', '--json'],
]

test('a key and a header in dsh.yml are sent, echoed by the provider, and shown nowhere', async t => {
  const place = bench(t)
  const { requests } = await place.provider({
    key: null,
    script: [
      reply.status(401, { body: { error: { message: `bad key ${canary}` } } }),
      reply.sse([{ error: { message: `header x-team: ${canary} is unknown`, code: 'invalid' } }]),
      reply.text('ok'),
    ],
  })
  mkdirSync(place.home, { recursive: true })
  const file = join(place.home, 'dsh.yml')
  writeFileSync(
    file,
    `- id: llm-openai-chat\n  config:\n    providers:\n      deepseek: {apiKey: ${canary}, headers: {x-team: ${canary}}}\n`,
  )
  const runs = [
    ['run', 'go'],
    ['run', '--json', 'go'],
    ['run', 'go'],
  ]
  const outputs = await said(place, [...runs, ...looks])
  assert.equal(requests[0]?.headers['authorization'], `Bearer ${canary}`)
  assert.ok(requests.length >= 3)
  assertKept(place, outputs, [file])
})

test('the password of a proxy is in no message, log or report', async t => {
  const place = bench(t)
  const { port } = new URL((await place.provider({ fallback: reply.status(407) })).url)
  const proxy = `http://user:${canary}@127.0.0.1:${port}`
  const env = {
    DEEPSEEK_BASE_URL: 'https://api.invalid',
    HTTPS_PROXY: proxy,
    https_proxy: proxy,
    DSH_DEBUG: '1',
  }
  const outputs = await said(place, [['run', 'go'], ['run', '--json', 'go'], ...looks], env)
  assert.match(outputs.join(''), /PROXY|proxy/)
  const bad = { ...env, HTTPS_PROXY: `socks5://user:${canary}@127.0.0.1:1`, https_proxy: undefined }
  outputs.push(...(await said(place, [['run', 'go'], ...looks], bad)))
  assertKept(place, outputs)
})

test('a password in the address of a provider is in no message, log or report', async t => {
  const place = bench(t)
  const { port } = new URL((await place.provider({ fallback: reply.status(404) })).url)
  const env = { DEEPSEEK_BASE_URL: `http://user:${canary}@127.0.0.1:${port}` }
  const outputs = await said(place, [['run', 'go'], ['run', '--json', 'go'], ...looks], env)
  const gone = { DEEPSEEK_BASE_URL: `http://user:${canary}@127.0.0.1:1` }
  outputs.push(...(await said(place, [['run', '--json', 'go'], ...looks], gone)))
  assertKept(place, outputs)
})

test('a command is not given what dsh is given, also not through its parents', async t => {
  const place = bench(t)
  const { requests } = await place.provider({
    script: [
      reply.toolCall('bash', {
        command: 'env; for p in $PPID 1 self; do tr "\\0" "\\n" < /proc/$p/environ; done; ps auxwwe',
        description: 'Look around',
      }),
      reply.text('ok'),
    ],
  })
  const env = {
    DEEPSEEK_API_KEY: `sk-${canary}`,
    NPM_TOKEN: canary,
    DATABASE_URL: `postgres://u:${canary}@h/d`,
  }
  const outputs = await said(place, [['run', '--yes', '--json', 'go']], env)
  assert.match(requests[1]?.text ?? '', /PATH=/)
  assertKept(place, outputs)
})

test('what a command prints stands in the log, and an export takes it out', async t => {
  const place = bench(t)
  writeFileSync(join(place.work, '.env.test'), `API_KEY=${canary}\n`)
  await place.provider({
    script: [reply.toolCall('bash', { command: 'cat .env.test', description: 'Look' }), reply.text('ok')],
  })
  const { stdout } = await place.dsh(['run', '--yes', '--json', 'go'])
  assert.ok(stdout.includes(canary))
  const id = (await place.dsh(['session', 'ls'])).stdout.trim().split(/\s/)[0] ?? ''
  for (const format of ['jsonl', 'md', 'html']) {
    const given = await place.dsh(['session', 'export', id, '--format', format])
    assert.equal(given.code, 0)
    assert.ok(given.stdout.length > 100 && !given.stdout.includes(canary), given.stdout)
  }
})
