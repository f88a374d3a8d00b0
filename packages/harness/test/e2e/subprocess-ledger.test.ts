import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { LocalSubprocess } from '../../src/plugins/subprocess/index.ts'

const noProc = !fs.existsSync('/proc/self/stat')
const root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-ledger-')))
after(() => fs.rmSync(root, { recursive: true }))
let folders = 0
const newFolder = (): string => join(root, String(++folders))

const script = `
  import { LocalSubprocess } from '@dsh/harness/plugins/subprocess'
  const [, ledger, ...commands] = process.argv
  const service = new LocalSubprocess({ env: { PATH: process.env.PATH }, pass: [], ledger })
  for (const command of commands)
    service.spawn({ argv: ['sh', '-c', command], cwd: '/', stdin: 'ignore', stdout: 'inherit', stderr: 'inherit', graceMs: 100, drainMs: 100 })
  process.on('SIGUSR1', async () => { await service.close(); process.exit() })
  setInterval(() => {}, 1000)`

/** A program that runs \`commands\`, each of which prints its own number. */
async function hostOf(ledger: string, commands: readonly string[], count = commands.length) {
  const args = ['--conditions=dsh-source', '--input-type=module', '-e', script, ledger, ...commands]
  const host = spawn(process.execPath, args, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const limit = setTimeout(() => host.kill('SIGKILL'), 60_000)
  host.once('exit', () => clearTimeout(limit))
  let printed = ''
  host.stdout.on('data', bytes => (printed += String(bytes)))
  const pids = (): number[] => printed.trim().split(/\s+/).filter(Boolean).map(Number)
  await until(() => pids().length >= count)
  return { host, pids: pids() }
}

async function kill(host: ChildProcess): Promise<void> {
  host.kill('SIGKILL')
  await once(host, 'exit')
}

const later = (ledger: string, env: Record<string, string> = {}) =>
  new LocalSubprocess({ env: { PATH: process.env['PATH'], ...env }, pass: [], ledger })

async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!isSo()) {
    assert.ok(performance.now() < deadline, 'it never came')
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

test(
  'what a killed program left running is ended by the next one, whatever it does with signals, sessions and its environment',
  { skip: noProc },
  async () => {
    const ledger = newFolder()
    const { host, pids } = await hostOf(ledger, [
      'echo $$; exec sleep 300',
      `trap '' TERM; echo $$; sleep 300; sleep 300`,
      `setsid sh -c 'echo $$; exec sleep 300' & sleep 300`,
      `env -i sh -c 'echo $$; exec sleep 300' & exec sleep 300`,
    ])
    await kill(host)
    assert.deepEqual(pids.filter(isRunning), pids)
    assert.equal(fs.readdirSync(ledger).length, 1)
    await later(ledger).reap()
    assert.deepEqual(pids.filter(isRunning), [])
    assert.deepEqual(fs.readdirSync(ledger), [])
  },
)

test(
  'a program that runs keeps what it started, and notes nothing once it has ended cleanly',
  { skip: noProc },
  async () => {
    const ledger = newFolder()
    const { host, pids } = await hostOf(ledger, ['echo $$; exec sleep 300'])
    await later(ledger).reap()
    assert.deepEqual(pids.filter(isRunning), pids)
    assert.equal(fs.readdirSync(ledger).length, 1)
    host.kill('SIGUSR1')
    await once(host, 'exit')
    assert.deepEqual(fs.readdirSync(ledger), [])
    assert.deepEqual(pids.filter(isRunning), [])
  },
)

test(
  'nothing is ended that does not carry the mark of a dead program of this world',
  { skip: noProc },
  async () => {
    const ledger = newFolder()
    const { host, pids } = await hostOf(ledger, ['echo $$; exec sleep 300'])
    await kill(host)
    const [name = ''] = fs.readdirSync(ledger)
    const [boot = '', space = '', pid = '', start = '', nonce = ''] = name.split('.')
    const write = (parts: readonly string[]): void => fs.writeFileSync(join(ledger, parts.join('.')), '')
    fs.rmSync(join(ledger, name))
    write([boot, '1', pid, start, nonce])
    write([boot, space, pid, start, 'x'.repeat(12)])
    write(['0'.repeat(8) + boot.slice(8), space, pid, start, nonce])
    fs.writeFileSync(join(ledger, 'notes.txt'), 'mine')
    await later(ledger).reap()
    assert.deepEqual(pids.filter(isRunning), pids)
    assert.deepEqual(
      fs.readdirSync(ledger).toSorted(),
      [[boot, '1', pid, start, nonce].join('.'), 'notes.txt'].toSorted(),
      'what cannot be judged stays, what is over goes',
    )
    write([boot, space, pid, start, nonce])
    await later(ledger, { DSH_PROCESS: `${nonce}.1` }).reap()
    assert.deepEqual(
      pids.filter(isRunning),
      pids,
      'who was started by the dead program itself leaves it alone',
    )
    await later(ledger).reap()
    assert.deepEqual(pids.filter(isRunning), [])
  },
)

test('a folder that takes no notes costs the reaping and nothing else', async () => {
  const file = join(root, 'file')
  fs.writeFileSync(file, '')
  const service = later(join(file, 'ledger'))
  const handle = service.spawn({
    argv: ['true'],
    cwd: '/',
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
    graceMs: 100,
    drainMs: 100,
  })
  assert.equal((await handle.done).exitCode, 0)
  await service.close()
})
