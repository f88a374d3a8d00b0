import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

const cli = join(import.meta.dirname, '../..')
const nodePackage = join(cli, '../../node_modules/node')
const old = olderNode()
const nodes = [process.execPath, ...(old ? [old] : [])]

/** A main with one word per behaviour that the wrapper must carry over. */
const main = `
  import { writeSync } from 'node:fs'
  const signals = []
  export async function main([word, value]) {
    if (word === 'exit') return Number(value)
    if (word === 'die') process.kill(process.pid, value)
    if (word === 'version') console.log(process.versions.node, process.env.DSH_WRAPPER_FD)
    if (word === 'import') console.log(JSON.stringify((await import(value)).default))
    if (word === 'sqlite') await import('node:sqlite')
    if (word === 'wait') {
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => signals.push(signal))
      writeSync(1, process.pid + '\\n')
      while (!signals.some(signal => signal !== 'SIGINT')) await new Promise(resolve => setTimeout(resolve, 20))
      writeSync(1, signals.join() + '\\n')
      return 3
    }
    return 0
  }
`

/** An installed package or a checkout around a copy of bin.js, with the npm package \`node\` beside it. */
function setup(t: TestContext, files: Record<string, string> = { 'dist/main.js': main }) {
  const root = mkdtempSync(join(tmpdir(), 'dsh-bin-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  cpSync(join(cli, 'bin.js'), join(root, 'bin.js'))
  for (const [file, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  mkdirSync(join(root, 'node_modules'), { recursive: true })
  symlinkSync(nodePackage, join(root, 'node_modules/node'))
  const env = { ...process.env, DSH_HOME: join(root, 'home') }

  const start = (node: string, ...args: string[]) => {
    const child = spawn(node, [join(root, 'bin.js'), ...args], { env, detached: true })
    const out = { stdout: '', stderr: '' }
    child.stdout.on('data', chunk => (out.stdout += String(chunk)))
    child.stderr.on('data', chunk => (out.stderr += String(chunk)))
    const ended = once(child, 'close').then(([code, signal]: unknown[]) => ({ code, signal, ...out }))
    const line = async () => {
      while (!out.stdout.includes('\n')) await once(child.stdout, 'data')
      return out.stdout.trim()
    }
    return { child, ended, line }
  }
  return { root, env, start, run: (node: string, ...args: string[]) => start(node, ...args).ended }
}

for (const node of nodes) {
  describe(`started by Node ${versionOf(node)}`, () => {
    test('the exit code is that of main', async t => {
      const { run } = setup(t)
      assert.deepEqual(await run(node, 'exit', '7'), { code: 7, signal: null, stdout: '', stderr: '' })
    })

    test('main runs on Node 22.19 or newer and does not see the wrapper', async t => {
      const { run } = setup(t)
      const { stdout, stderr } = await run(node, 'version')
      assert.match(stdout, /^(22\.(19|[2-9]\d)|2[3-9]|[3-9]\d)\.\S+ undefined\n$/)
      assert.equal(stderr, '')
    })

    test('SIGTERM and SIGHUP reach main', async t => {
      const { start } = setup(t)
      for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
        const { child, line, ended } = start(node, 'wait')
        await line()
        child.kill(signal)
        const { code, stdout } = await ended
        assert.deepEqual([code, stdout.split('\n')[1]], [3, signal])
      }
    })

    test('one Ctrl-C is one SIGINT', async t => {
      const { start } = setup(t)
      const { child, line, ended } = start(node, 'wait')
      await line()
      process.kill(-Number(child.pid), 'SIGINT')
      await sleep(200)
      child.kill('SIGTERM')
      assert.equal((await ended).stdout.split('\n')[1], 'SIGINT,SIGTERM')
    })

    test('main ends when the process that was started is killed', { timeout: 10_000 }, async t => {
      const { start } = setup(t)
      const { child, line, ended } = start(node, 'wait')
      await line()
      child.kill('SIGKILL')
      const { stdout } = await ended
      if (node === old) assert.equal(stdout.split('\n')[1], 'SIGTERM')
    })

    test('loading SQLite and TypeScript warns of nothing', async t => {
      const { run } = setup(t, { 'src/main.ts': main })
      assert.deepEqual(await run(node, 'sqlite'), { code: 0, signal: null, stdout: '', stderr: '' })
    })

    test('a plugin elsewhere gets the running copy of @dsh packages', async t => {
      const pkg = { exports: { './*': { 'dsh-source': './src/*.ts', default: './dist/*.js' } } }
      const plugin = { 'elsewhere/plugin.js': "export { default } from '@dsh/harness/kernel'\n" }
      const theirs = { 'elsewhere/node_modules/@dsh/harness/kernel.js': "export default 'theirs'\n" }
      const bundled = { 'dist/main.js': main, 'dist/@dsh/harness/kernel.js': "export default 'bundled'\n" }
      const checkout = {
        'src/main.ts': main,
        'node_modules/@dsh/harness/package.json': JSON.stringify({ type: 'module', ...pkg }),
        'node_modules/@dsh/harness/dist/kernel.js': "export default 'built'\n",
      }

      const installed = setup(t, { ...bundled, ...plugin, ...theirs })
      const fromBundle = await installed.run(node, 'import', join(installed.root, 'elsewhere/plugin.js'))
      assert.equal(fromBundle.stdout, '"bundled"\n', fromBundle.stderr)

      // Node strips no types below node_modules, so the source is linked in, as a workspace does it.
      const { root, run } = setup(t, {
        ...checkout,
        ...plugin,
        ...theirs,
        'linked/kernel.ts': "export default 'source'\n",
      })
      symlinkSync(join(root, 'linked'), join(root, 'node_modules/@dsh/harness/src'))
      const fromSource = await run(node, 'import', join(root, 'elsewhere/plugin.js'))
      assert.equal(fromSource.stdout, '"source"\n', fromSource.stderr)
    })
  })
}

test('a death by signal is passed on', async t => {
  const { run } = setup(t)
  const { code, signal } = await run(process.execPath, 'die', 'SIGKILL')
  assert.deepEqual({ code, signal }, { code: null, signal: 'SIGKILL' })
  if (old) assert.equal((await run(old, 'die', 'SIGKILL')).code, 137)
})

test('without a newer Node one line says what to install', { skip: !old }, async t => {
  const line = /^dsh needs Node 22\.19 or newer, found \S+; get it from \S+\n$/
  const { root, run } = setup(t)
  rmSync(join(root, 'node_modules'), { recursive: true })
  const missing = await run(old ?? '', 'exit', '0')
  assert.deepEqual([missing.code, missing.stdout], [2, ''])
  assert.match(missing.stderr, line)

  mkdirSync(join(root, 'node_modules/node'), { recursive: true })
  writeFileSync(join(root, 'node_modules/node/package.json'), '{"bin":{"node":"node"}}')
  symlinkSync(old ?? '', join(root, 'node_modules/node/node'))
  const tooOld = await run(old ?? '', 'exit', '0')
  assert.equal(tooOld.code, 2)
  assert.match(tooOld.stderr, line)
})

test('the compile cache lives in the home, which only its owner reads', async t => {
  const { root, run } = setup(t)
  await run(process.execPath, 'exit', '0')
  assert.equal(readdirSync(join(root, 'home/cache')).length, 1)
  assert.equal(statSync(join(root, 'home')).mode & 0o777, 0o700)
})

test('a home that cannot be written costs nothing', async t => {
  const { env, run } = setup(t)
  env.DSH_HOME = '/dev/null/home'
  assert.deepEqual(await run(process.execPath, 'exit', '4'), {
    code: 4,
    signal: null,
    stdout: '',
    stderr: '',
  })
})

/** A Node on the PATH that is too old to run dsh by itself. */
function olderNode(): string | undefined {
  const found = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, 'node'))
  return found.filter(path => existsSync(path)).find(path => /^(1\d|20|21)\./.test(versionOf(path)))
}

function versionOf(node: string): string {
  return execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
}
