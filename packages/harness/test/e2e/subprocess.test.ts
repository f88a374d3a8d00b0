import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Context } from '../../src/kernel/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import type { SpawnSpec } from '../../src/plugins/subprocess/index.ts'

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-subprocess-')))
after(() => rmSync(dir, { recursive: true }))
const noProc = !existsSync('/proc/self/stat')

async function setup(config: { env?: Record<string, string>; pass?: string[] } = {}) {
  const ctx = new Context()
  const plugin = ctx.plugin(subprocess, { env: { PATH: process.env['PATH'] ?? '' }, ...config })
  await plugin
  const service = ctx.subprocess
  const capture = { headBytes: 1 << 16, tailBytes: 1 << 16 }
  const start = (argv: SpawnSpec['argv'], spec: Partial<SpawnSpec> = {}) =>
    service.spawn({
      argv,
      cwd: dir,
      stdin: 'ignore',
      stdout: capture,
      stderr: capture,
      graceMs: 5000,
      drainMs: 300,
      ...spec,
    })
  const sh = (script: string, spec: Partial<SpawnSpec> = {}) => start(['sh', '-c', script], spec)
  const out = (handle: ReturnType<typeof sh>): string => handle.collected.stdout?.readFrom(0).text ?? ''
  return { ctx, plugin, service, start, sh, out, [Symbol.asyncDispose]: () => ctx.dispose() }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return noProc || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits for the ends that were ordered: a signal is delivered when the system gets to it. */
async function allEnded(pids: readonly number[]): Promise<void> {
  while (pids.some(isRunning)) await new Promise(resolve => setTimeout(resolve, 5))
}

/** Waits for the first line that a process prints. */
async function firstLine(handle: ReturnType<Awaited<ReturnType<typeof setup>>['sh']>): Promise<string> {
  for (;;) {
    const text = handle.collected.stdout?.readFrom(0).text ?? ''
    if (text.includes('\n')) return text.split('\n')[0] ?? ''
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

test('both outputs, exit code, folder and arguments come through as they are', async () => {
  await using world = await setup()
  const handle = world.start([
    'sh',
    '-c',
    'pwd; printf "%s|" "$@"; echo err >&2; exit 3',
    'sh',
    'a b',
    '$x',
    '*',
    '',
  ])
  assert.deepEqual(await handle.done, { exitCode: 3, signal: null, pipesHeld: false })
  assert.equal(world.out(handle), `${dir}\na b|$x|*||`)
  assert.equal(handle.collected.stderr?.readFrom(0).text, 'err\n')
  assert.ok(handle.pid > 0)
})

test('a process that ends itself by a signal says which', async () => {
  await using world = await setup()
  const exit = await world.sh('kill -9 $$').done
  assert.deepEqual(exit, { exitCode: null, signal: 'SIGKILL', pipesHeld: false })
})

test('what cannot be started rejects with what is missing', async () => {
  await using world = await setup()
  const noProgram = world.start(['no-such-program'])
  await assert.rejects(noProgram.done, { code: 'PROGRAM_NOT_FOUND', message: 'no program "no-such-program"' })
  assert.equal(noProgram.pid, -1)
  assert.equal(await noProgram.waitForExit(), true)
  noProgram.terminate()
  await assert.rejects(world.sh('true', { cwd: join(dir, 'none') }).done, {
    code: 'WORKDIR_NOT_FOUND',
    message: `no folder "${dir}/none" to work in`,
  })
  assert.throws(() => world.start(['']), TypeError)
  for (const ms of [0, -1, NaN, Infinity, 2 ** 31])
    assert.throws(() => world.sh('true', { graceMs: ms }), RangeError)
})

test('programs are found on the PATH or by absolute path, nowhere else', async () => {
  await using world = await setup()
  const { service } = world
  const sh = await service.resolveExecutable('sh')
  assert.equal(await service.resolveExecutable(sh), sh)
  assert.equal(await service.resolveExecutable('sh', { env: { PATH: `relative:${sh.slice(0, -3)}` } }), sh)
  for (const wrong of ['', './sh', 'bin/sh', dir, join(dir, 'none'), 'no-such-program'])
    await assert.rejects(service.resolveExecutable(wrong), { code: 'PROGRAM_NOT_FOUND' })
  await assert.rejects(service.resolveExecutable('sh', { env: { PATH: '' } }), { code: 'PROGRAM_NOT_FOUND' })
})

test('without input a process reads the end at once; given input, that and then the end', async () => {
  await using world = await setup()
  const none = world.sh('cat; echo end')
  await none.done
  assert.equal(world.out(none), 'end\n')
  const data = world.sh('cat; echo end', { stdin: { data: '溝\n' } })
  await data.done
  assert.equal(world.out(data), '溝\nend\n')
  const ignored = world.sh('exec 0<&-; exit 0', { stdin: { data: 'x'.repeat(1 << 22) } })
  assert.equal((await ignored.done).exitCode, 0)
})

test('the environment is the allowed part, what the caller adds and a mark', async () => {
  const PATH = process.env['PATH'] ?? ''
  await using world = await setup({
    env: { PATH, API_KEY: 'k', FOO: '1', BAR: '2', TZ: 'UTC' },
    pass: ['FOO'],
  })
  const handle = world.start(['env'], { env: { TOKEN: 'explicit', TZ: undefined } })
  await handle.done
  const names = world
    .out(handle)
    .trim()
    .split('\n')
    .map(line => line.split('=')[0])
  assert.deepEqual(new Set(names), new Set(['DSH_PROCESS', 'FOO', 'PATH', 'TOKEN']))
  assert.deepEqual(world.service.withheldNames, ['API_KEY', 'BAR'])
})

test('pipes and pieces are given to those who ask for them', async () => {
  await using world = await setup()
  const handle = world.sh('cat', { stdin: 'pipe', stdout: 'pipe' })
  handle.stdin?.end('hello')
  const pieces = await Array.fromAsync(handle.stdout ?? [])
  assert.equal(Buffer.concat(pieces as Buffer[]).toString(), 'hello')
  assert.equal((await handle.done).exitCode, 0)
  const seen: string[] = []
  const onData = (bytes: Uint8Array): unknown => seen.push(Buffer.from(bytes).toString())
  await world.sh('echo live', { stdout: { headBytes: 0, tailBytes: 0, onData } }).done
  assert.equal(seen.join(''), 'live\n')
})

test('output written byte by byte is whole characters again', async () => {
  await using world = await setup()
  const script =
    "for (const byte of Buffer.from('溝内渐🐳é')) require('fs').writeSync(1, Buffer.from([byte]))"
  const handle = world.start([process.execPath, '-e', script])
  await handle.done
  assert.equal(world.out(handle), '溝内渐🐳é')
})

test('an abort ends the whole tree, and one before the start starts nothing', async () => {
  await using world = await setup()
  const controller = new AbortController()
  const handle = world.sh('sleep 60 & echo $!; wait', { signal: controller.signal })
  const child = Number(await firstLine(handle))
  controller.abort(new Error('stop'))
  assert.equal((await handle.done).signal, 'SIGTERM')
  assert.equal(await handle.waitForExit(), true)
  assert.equal(isRunning(child), false)
  assert.throws(() => world.sh('true', { signal: controller.signal }), /stop/)
})

test('a tree that ignores the polite signal is killed after the grace', async () => {
  await using world = await setup()
  const handle = world.sh(
    'trap "" TERM; (trap "" TERM; while :; do sleep 60; done) & echo $!; while :; do sleep 60; done',
    {
      graceMs: 100,
    },
  )
  const child = Number(await firstLine(handle))
  handle.terminate()
  handle.terminate()
  assert.equal((await handle.done).signal, 'SIGKILL')
  assert.equal(await handle.waitForExit(), true)
  assert.equal(isRunning(child), false)
})

test(
  'children that left the session, twice forked, are ended with their tree',
  { skip: noProc },
  async () => {
    await using world = await setup()
    const handle = world.sh('(setsid sh -c "(setsid sleep 60 >/dev/null 2>&1 & echo \\$!) &"); sleep 60')
    const stray = Number(await firstLine(handle))
    assert.ok(isRunning(stray))
    assert.ok(handle.survivors().some(({ pid }) => pid === stray))
    handle.terminate()
    assert.equal(await handle.waitForExit(), true)
    assert.equal(isRunning(stray), false)
  },
)

test('what holds the pipe does not hold up the end, and can go on printing', { skip: noProc }, async () => {
  await using world = await setup()
  const started = performance.now()
  const handle = world.sh('(while :; do echo x; sleep 0.05; done) & echo done')
  const exit = await handle.done
  assert.ok(performance.now() - started < 20_000)
  assert.deepEqual(exit, { exitCode: 0, signal: null, pipesHeld: true })
  assert.match(world.out(handle), /done/)
  const kept = world.out(handle)
  const [left] = handle.survivors()
  await new Promise(resolve => setTimeout(resolve, 200))
  assert.ok(left !== undefined && isRunning(left.pid), 'it is not ended by a broken pipe')
  assert.equal(world.out(handle), kept)
  assert.equal(await handle.waitForExit(AbortSignal.timeout(50)), false)
  handle.terminate()
  assert.equal(await handle.waitForExit(), true)
})

test('a group of zombies alone is gone', { skip: noProc }, async () => {
  await using world = await setup()
  // The middle process leaves the group and never buries its child, which stays in it.
  const script =
    'import os,sys,time\n' +
    'if os.fork()==0:\n' +
    '  child=os.fork()\n' +
    '  if child==0: os._exit(0)\n' +
    '  os.setsid(); os.closerange(0,3); time.sleep(60)\n' +
    'time.sleep(0.2)\n'
  const handle = world.start(['python3', '-c', script])
  await handle.done
  const [middle, ...others] = handle.survivors()
  assert.equal(others.length, 0)
  process.kill(middle?.pid ?? 0, 'SIGKILL')
  assert.equal(await handle.waitForExit(), true)
})

test(
  'disposing ends what runs, what was left behind and nothing else, and refuses new processes',
  { skip: noProc },
  async () => {
    const world = await setup()
    const other = spawn('sleep', ['60'])
    const running = world.sh('sleep 60')
    const left = world.sh('nohup sleep 60 >/dev/null 2>&1 & echo $!')
    await left.done
    const wiped = world.sh('env -i sleep 60 >/dev/null 2>&1 & echo $!')
    await wiped.done
    const away = world.sh('setsid sleep 60 >/dev/null 2>&1 & echo $!')
    await away.done
    world.start(['no-such-program'])
    const pids = [left, wiped, away].map(handle => Number(world.out(handle)))
    assert.deepEqual(pids.map(isRunning), [true, true, true])
    const { service } = world
    await world.plugin.dispose()
    assert.equal((await running.done).signal, 'SIGTERM')
    assert.deepEqual(pids.map(isRunning), [false, false, false])
    assert.ok(isRunning(other.pid ?? 0))
    other.kill()
    const spec = { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', graceMs: 1, drainMs: 1 } as const
    assert.throws(() => service.spawn({ ...spec, argv: ['true'], cwd: dir }), { code: 'SUBPROCESS_CLOSED' })
    assert.equal(world.ctx.get('subprocess'), undefined)
  },
)

test(
  'when the harness exits everything it started is ended at once',
  { skip: noProc, timeout: 20_000 },
  async () => {
    const script = `
    import { Context } from '@dsh/harness/kernel'
    import { subprocess } from '@dsh/harness/plugins/subprocess'
    const ctx = new Context()
    await ctx.plugin(subprocess)
    const spec = { cwd: '/', stdin: 'ignore', stderr: 'inherit', graceMs: 1000, drainMs: 100 }
    const tail = { headBytes: 100, tailBytes: 100 }
    const left = ctx.subprocess.spawn({ ...spec, argv: ['sh', '-c', 'setsid sleep 60 >/dev/null & echo $!'], stdout: tail })
    await left.done
    const runs = ctx.subprocess.spawn({ ...spec, argv: ['sh', '-c', 'trap "" TERM; sleep 60 & echo $!; wait'], stdout: tail })
    while (!runs.collected.stdout.readFrom(0).text.includes('\\n')) await new Promise(go => setTimeout(go, 5))
    console.log(left.collected.stdout.readFrom(0).text + runs.collected.stdout.readFrom(0).text + runs.pid)
    if (process.argv[1] === 'throw') throw new Error('boom')
    process.exit(0)`
    for (const way of ['exit', 'throw']) {
      const host = spawn(
        process.execPath,
        ['--conditions=dsh-source', '--input-type=module', '-e', script, way],
        {
          cwd: import.meta.dirname,
          stdio: ['ignore', 'pipe', 'ignore'],
        },
      )
      let printed = ''
      host.stdout.on('data', bytes => (printed += String(bytes)))
      await once(host, 'close')
      const pids = printed.trim().split('\n').map(Number)
      assert.equal(pids.length, 3, way)
      await allEnded(pids)
    }
  },
)
