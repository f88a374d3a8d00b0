import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { skipWithoutBwrap } from './bwrap.ts'

const run = promisify(execFile)
const patienceMs = 90_000

/** Runs `command` through the tool in a harness with a small heap, and tells what became of it. */
async function flood(command: string, timeoutMs: number, kind: 'bare' | 'sandboxed' = 'bare') {
  const script = `
    import { CallId, SessionId } from '@dsh/protocol'
    import { bash } from '@dsh/harness/plugins/bash'
    import { fs } from '@dsh/harness/plugins/fs'
    import { sandbox } from '@dsh/harness/plugins/sandbox'
    import { subprocess } from '@dsh/harness/plugins/subprocess'
    import { createHarness } from '@dsh/harness/testing'
    const { ctx } = await createHarness()
    const [, command, timeoutMs, kind] = process.argv
    await ctx.plugin(fs)
    if (kind === 'sandboxed') await ctx.plugin(sandbox)
    await ctx.plugin(subprocess)
    await ctx.plugin(bash, { graceMs: 200 })
    let told = 0
    ctx.on('bash/output', ({ text }) => (told += text.length))
    const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: process.cwd() } })
    const call = args =>
      ctx.tools.execute({ callId: CallId('c'), name: 'bash', arguments: args, signal: new AbortController().signal, agent })
    await call({ command: 'true', description: 'warm up' })
    process.stderr.write('warm ')
    const before = process.memoryUsage().rss
    let peak = 0
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss - before)), 20)
    const started = performance.now()
    const result = await call({ command, description: 'flood', timeoutMs: Number(timeoutMs) })
    clearInterval(timer)
    peak = Math.max(peak, process.memoryUsage().rss - before)
    const { stdout, stderr } = result.meta.outputs
    const kept = await Promise.all([stdout, stderr].map(async ({ artifact }) =>
      artifact === undefined ? 0 : (await agent.session.artifacts.get(artifact)).length))
    process.stderr.write('answered ')
    console.log(JSON.stringify({
      text: result.content[0].text, took: performance.now() - started, peak: peak / 2 ** 20, told,
      timedOut: result.meta.timedOut, bytes: stdout.bytes + stderr.bytes, kept: kept[0] + kept[1],
    }))
    process.exit(0)`
  const args = ['--conditions=dsh-source', '--max-old-space-size=256', '--input-type=module', '-e', script]
  const stdout = await outputOf([...args, command, String(timeoutMs), kind])
  return JSON.parse(stdout) as {
    text: string
    took: number
    peak: number
    told: number
    timedOut: boolean
    bytes: number
    kept: number
  }
}

/**
 * What Node prints with `args`. One that does not end is killed, so that it holds up nothing; where it had answered,
 * it hung in its own exit (nodejs/node#54918), which says nothing of the tool. Else standard error says how far it came.
 */
async function outputOf(args: readonly string[]): Promise<string> {
  const limits = { timeout: patienceMs, killSignal: 'SIGKILL', maxBuffer: 1 << 24 } as const
  try {
    return (await run(process.execPath, args, { cwd: import.meta.dirname, ...limits })).stdout
  } catch (error) {
    const { stdout, stderr = '' } = error as { stdout?: string; stderr?: string }
    if (stdout !== undefined && stderr.endsWith('answered ')) return stdout
    throw error
  }
}

const megabyte = 2 ** 20

async function isBounded(command: string, kind: 'bare' | 'sandboxed'): Promise<void> {
  const result = await flood(command, 1500, kind)
  assert.equal(result.timedOut, true)
  assert.ok(result.took < 20_000, `${result.took} ms`)
  assert.ok(result.peak < 150, `${result.peak} MB`)
  assert.ok(result.bytes > 20 * megabyte, `${result.bytes} bytes came`)
  assert.ok(Buffer.byteLength(result.text) < 26_000)
  assert.match(result.text, /\n\[… \d+ bytes left out; read artifact:[0-9a-f]{64} for more …\]\n/)
  assert.ok(result.kept > 4 * megabyte, `${result.kept} bytes can be read`)
  assert.ok(result.told < 4 * megabyte, 'a listener is not flooded')
}

for (const command of [
  'yes',
  'head -c 1G /dev/urandom',
  'head -c 1G /dev/urandom | base64',
  'seq 1 1000000000',
])
  test(`output without end is bounded in memory and ended in time: ${command}`, () =>
    isBounded(command, 'bare'))

for (const command of ['yes', 'seq 1 1000000000 >&2; true'])
  test(`output without end is bounded in the sandbox too: ${command}`, { skip: skipWithoutBwrap() }, () =>
    isBounded(command, 'sandboxed'),
  )

test('zeros without end are bounded too, and counted', async () => {
  const result = await flood('cat /dev/zero', 1500)
  assert.equal(result.timedOut, true)
  assert.ok(result.took < 20_000, `${result.took} ms`)
  assert.ok(result.peak < 150, `${result.peak} MB`)
  assert.match(result.text, /^(␀\[×65536\])+\n\[… \d+ bytes were not kept …\]|␀\[×65536\]/)
})

test('a giant line without end, and a million lines of errors, are kept at both ends', async () => {
  const line = await flood("printf begin; head -c 200M /dev/zero | tr '\\0' x; printf end", 30_000)
  assert.match(line.text, /^beginx{1000,}\n\[… \d+ bytes left out.*\]\nx{1000,}end$/)
  assert.equal(line.bytes, 200 * megabyte + 8)
  assert.ok(line.peak < 150, `${line.peak} MB`)
  const errors = await flood('seq 1 1000000 >&2', 30_000)
  assert.match(errors.text, /^\[stderr\]\n1\n2\n[^]*\n999999\n1000000$/)
  assert.ok(errors.peak < 150, `${errors.peak} MB`)
})
