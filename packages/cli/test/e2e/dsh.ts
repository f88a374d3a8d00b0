import { spawn } from 'node:child_process'
import type { ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  watch,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { startMockProvider } from '@dsh/harness/testing'
import type { MockProvider, MockProviderOptions, MockRequest } from '@dsh/harness/testing'

export const bin = join(import.meta.dirname, '../../bin.js')
/** Longer than anything takes on a busy machine, shorter than a test may. */
const patienceMs = 90_000

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** What standard input holds; absent = it is empty, null = it stays open. */
  readonly input?: string | null
  readonly cwd?: string
  /** Runs as this user. */
  readonly uid?: number
}

/** For root, whom no permission stops: the user nobody. */
export const unprivileged: StartOptions = process.getuid?.() === 0 ? { uid: 65534 } : {}

/** What loads the faults of `fault.mjs` into a command. */
export function preload(faults: Readonly<Record<string, string>>): Record<string, string> {
  return { ...faults, NODE_OPTIONS: `--import=${join(import.meta.dirname, 'fault.mjs')}` }
}

export interface Started {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly out: { stdout: string; stderr: string }
  readonly ended: Promise<Ended>
  /** Resolves once the output holds a match. */
  said(pattern: RegExp): Promise<void>
}

/** A home, a folder to work in, and the real command in a clean environment. */
export interface Bench {
  readonly root: string
  readonly home: string
  readonly work: string
  readonly env: Record<string, string | undefined>
  start(args: readonly string[], options?: StartOptions): Started
  /** The same at a terminal of its own, whose input stays open and whose whole output is `stdout`. */
  terminal(args: readonly string[], options?: StartOptions): Started
  dsh(args: readonly string[], options?: StartOptions): Promise<Ended>
  /** A provider whose key is in the environment of every command from now on. */
  provider(options?: MockProviderOptions): Promise<MockProvider>
  /** The stored logs. */
  logs(): string[]
}

export function bench(t: TestContext): Bench {
  const root = mkdtempSync(join(tmpdir(), 'dsh-e2e-'))
  chmodSync(root, 0o755)
  const [home, work] = [join(root, 'user/.dsh'), join(root, 'work')]
  for (const folder of [join(root, 'user'), work]) mkdirSync(folder)
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const env: Record<string, string | undefined> = {
    PATH: process.env.PATH,
    HOME: join(root, 'user'),
    TMPDIR: root,
    LANG: 'C.UTF-8',
    // Else each of these homes would start with a cold cache.
    NODE_COMPILE_CACHE: join(tmpdir(), 'dsh-e2e-compile-cache'),
  }

  const launch = (program: readonly [string, ...string[]], options: StartOptions = {}): Started => {
    const { cwd = work, input = '', uid } = options
    if (uid !== undefined) chownSync(join(root, 'user'), uid, uid)
    const [command, ...words] = program
    const child = spawn(command, words, {
      cwd,
      env: { ...env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      ...(uid === undefined ? {} : { uid, gid: uid }),
    })
    t.after(() => child.kill('SIGKILL'))
    const out = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (out.stderr += text))
    child.stdin.on('error', () => {})
    if (input !== null) child.stdin.end(input)
    const ended = once(child, 'close').then(([code]: unknown[]) => ({ code: code as number | null, ...out }))
    const said = async (pattern: RegExp): Promise<void> => {
      const patience = AbortSignal.timeout(patienceMs)
      while (!pattern.test(out.stdout + out.stderr)) {
        if (child.exitCode !== null || patience.aborted)
          throw new Error(`nothing like ${pattern} came: ${out.stdout}${out.stderr}`)
        const news = [once(child.stdout, 'data'), once(child.stderr, 'data'), once(child, 'close')]
        await Promise.race([...news, once(patience, 'abort')])
      }
    }
    return { child, out, ended, said }
  }
  const start: Bench['start'] = (args, options) => launch([process.execPath, bin, ...args], options)
  const terminal: Bench['terminal'] = (args, options) => {
    const words = [process.execPath, bin, ...args].map(word => `'${word.replaceAll("'", "'\\''")}'`)
    return launch(['script', '-qefc', words.join(' '), '/dev/null'], { ...options, input: null })
  }

  return {
    root,
    home,
    work,
    env,
    start,
    terminal,
    dsh: (args, options) => start(args, options).ended,
    async provider(options) {
      const provider = await startMockProvider(options)
      t.after(() => provider.close())
      Object.assign(env, provider.env)
      return provider
    },
    logs: () => (existsSync(home) ? globSync(join(home, 'sessions/*/*/log.*')) : []),
  }
}

/** Resolves once the file is there. */
export function appears(folder: string, name: string): Promise<void> {
  return new Promise(resolve => {
    const watcher = watch(folder, look)
    function look(): void {
      if (!existsSync(join(folder, name))) return
      watcher.close()
      resolve()
    }
    look()
  })
}

/** Whether there is a program that gives a command a terminal. */
export const canTerminal = existsSync('/usr/bin/script')

/** The lines of `--json`: the events, and the result that ends them. */
export function jsonLines(stdout: string): {
  events: Record<string, unknown>[]
  result: Record<string, unknown>
} {
  const lines = stdout.split('\n')
  if (lines.pop() !== '') throw new Error('the last line does not end')
  const events = lines.map(line => JSON.parse(line) as Record<string, unknown>)
  const result = events.pop()
  if (result === undefined) throw new Error('there is no line')
  return { events, result }
}

/** What the person said, as the request tells it: without what plugins add in the same role. */
export function promptsIn(request: MockRequest | undefined): unknown[] {
  const said = (request?.body.messages ?? [])
    .filter(({ role }) => role === 'user')
    .map(({ content }) => content)
  return said.filter(content => !String(content).startsWith('Current runtime context.'))
}

/** The id that the last line on standard error names. */
export function sessionIn(stderr: string): string {
  const id = /^session (\S+) ·/m.exec(stderr)?.[1]
  if (id === undefined) throw new Error(`no session in ${stderr}`)
  return id
}

export function readBytes(path: string): string {
  return readFileSync(path, 'latin1')
}
