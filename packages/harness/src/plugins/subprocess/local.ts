import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, sep } from 'node:path'
import { _default, array, custom, optional, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { isFields, MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { childEnvironment } from './environment.ts'
import type { ChildEnvironment, Environment } from './environment.ts'
import { SubprocessError } from './errors.ts'
import { ProcessLedger } from './ledger.ts'
import { RunningProcess } from './running.ts'
import type {
  AdoptSpec,
  ForeignProcess,
  SpawnSpec,
  Subprocess,
  SubprocessHandle,
  TerminalHandle,
  TerminalSpec,
} from './service.ts'
import { findTree, markerName, markerOf, signalAll } from './tree.ts'
import type { SendSignal } from './tree.ts'

export interface SubprocessConfig {
  /** The environment that processes get a part of. Default: that of this process. */
  readonly env: Environment
  /** Further variables that processes get, by name or with `*` for any characters. */
  readonly pass: readonly string[]
  /** Where it is noted that this process started others, so that a later one ends them if this one is killed. */
  readonly ledger?: string | undefined
}

const strayGraceMs = 500
const reapAfterMs = 3000
const largestSide = 1000

/**
 * Processes of this machine, each the leader of a group and session of its own.
 *
 * Every process carries a variable that names it and this service, by which those are found that left the group. When
 * the service is disposed or this process exits, everything it started is ended. After a SIGKILL of this process
 * itself they live on until the next one with the same ledger starts.
 */
export class LocalSubprocess implements Subprocess {
  readonly #environment: ChildEnvironment
  readonly #nonce = randomBytes(9).toString('base64url')
  readonly #running = new Set<RunningProcess>()
  /** Trees whose program ended while something of the group lived on. */
  readonly #left = new Set<RunningProcess>()
  readonly #ledger: ProcessLedger | undefined
  #reaped: Promise<void> | undefined
  #count = 0
  #isClosed = false

  constructor({ env, pass, ledger }: SubprocessConfig) {
    this.#environment = childEnvironment(env, pass)
    if (ledger === undefined) return
    const place = { folder: ledger, nonce: this.#nonce, marked: env[markerName], send }
    this.#ledger = new ProcessLedger(place)
  }

  get env(): Readonly<Record<string, string>> {
    return this.#environment.env
  }

  get withheldNames(): readonly string[] {
    return this.#environment.withheld
  }

  async resolveExecutable(
    command: string,
    { env = {}, signal }: { readonly env?: SpawnSpec['env']; readonly signal?: AbortSignal } = {},
  ): Promise<string> {
    if (isAbsolute(command)) {
      if (await isExecutable(command)) return command
    } else if (command !== '' && !command.includes(sep)) {
      const path = { ...this.#environment.env, ...env }['PATH'] ?? ''
      for (const folder of path.split(delimiter).filter(isAbsolute)) {
        signal?.throwIfAborted()
        if (await isExecutable(join(folder, command))) return join(folder, command)
      }
    }
    throw new SubprocessError('PROGRAM_NOT_FOUND', `no program "${command}"`)
  }

  spawn(spec: SpawnSpec): SubprocessHandle {
    assertSpec(spec)
    spec.signal?.throwIfAborted()
    const marker = this.#begin(spec.argv[0])
    const [program, ...args] = spec.argv
    const child = spawn(program, args, {
      cwd: spec.cwd,
      detached: true,
      env: { ...this.#environment.env, ...spec.env, [markerName]: marker },
      stdio: [stdinMode(spec.stdin), outputMode(spec.stdout), outputMode(spec.stderr)],
      windowsHide: true,
    })
    const running = new RunningProcess(child, spec, {
      marker: `${markerName}=${marker}\0`,
      send,
      explain: error => explain(error, spec),
    })
    this.#keep(running)
    return running
  }

  async spawnTerminal(spec: TerminalSpec): Promise<TerminalHandle> {
    assertSpec({ ...spec, drainMs: spec.graceMs })
    for (const size of [spec.rows, spec.columns])
      if (!Number.isInteger(size) || size < 1 || size > largestSide)
        throw new RangeError(`a terminal has no side of ${size}`)
    spec.signal?.throwIfAborted()
    const { argv, cwd, env = {}, signal } = spec
    const program = await this.resolveExecutable(argv[0], { env, ...(signal && { signal }) })
    if (!(await isFolder(cwd))) throw noFolder(cwd)
    const { loadTerminals, startTerminal } = await import('./terminal.ts')
    const terminals = await loadTerminals()
    signal?.throwIfAborted()
    const marker = this.#begin(argv[0])
    const all = { ...this.#environment.env, ...env, [markerName]: marker }
    const running = startTerminal(
      terminals,
      { ...spec, argv: [program, ...argv.slice(1)] },
      {
        marker: `${markerName}=${marker}\0`,
        env: Object.fromEntries(Object.entries(all).filter(isSet)),
        send,
        explain: error => explain(error, spec),
      },
    )
    this.#keep(running)
    return running
  }

  /** What names the tree of a process that is about to start. */
  #begin(program: string): string {
    if (this.#isClosed)
      throw new SubprocessError('SUBPROCESS_CLOSED', `cannot start "${program}": the service is closed`)
    if (this.#count === 0) this.#ledger?.open()
    void this.reap()
    return `${this.#nonce}.${++this.#count}`
  }

  #keep(running: RunningProcess): void {
    this.#running.add(running)
    const forget = (): void => {
      this.#running.delete(running)
      // The number of a group that is gone may become that of another.
      for (const left of this.#left) if (!left.hasGroup()) this.#left.delete(left)
      if (running.hasGroup()) this.#left.add(running)
    }
    running.done.then(forget, forget)
  }

  adopt(process: ForeignProcess, { marker, ...spec }: AdoptSpec): SubprocessHandle {
    const around = {
      marker: `${markerName}=${marker}\0`,
      send,
      explain: (error: Error) => Promise.resolve(error),
    }
    const running = new RunningProcess(process, { ...spec, stdin: 'ignore' }, around)
    this.#running.add(running)
    const forget = (): void => void this.#running.delete(running)
    running.done.then(forget, forget)
    return running
  }

  /** Ends what programs left running that were killed themselves, once, in less than a second. */
  reap(): Promise<void> {
    this.#reaped ??= this.#ledger?.reap() ?? Promise.resolve()
    return this.#reaped
  }

  /** Ends every process and waits for that. No process can be started any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    const ends = await Promise.allSettled([...this.#running].map(running => running.end()))
    // To look for them takes a look at every process of the machine.
    const strays = this.#count > 0 ? this.#signalStrays('SIGTERM') : 0
    if (strays > 0) await this.#endStrays()
    await this.reap()
    if (strays === 0 || this.#strays().length === 0) this.#ledger?.close()
    const failed = ends.flatMap(end => (end.status === 'rejected' ? [end.reason as unknown] : []))
    if (failed.length > 0) throw new AggregateError(failed, 'processes could not be ended')
  }

  async #endStrays(): Promise<void> {
    const deadline = performance.now() + strayGraceMs
    while (this.#strays().length > 0 && performance.now() < deadline)
      await new Promise(resolve => setTimeout(resolve, 15))
    this.killAll()
  }

  /** Ends every process at once, without waiting. */
  killAll(): void {
    if (this.#count === 0) return
    for (const running of this.#running) running.killNow()
    // What forks while it dies is found by looking again.
    let left = 1
    for (let round = 0; round < 5 && left > 0; round++) left = this.#signalStrays('SIGKILL')
    if (left === 0) this.#ledger?.close()
  }

  #strays() {
    return findTree([...this.#left], markerOf(this.#nonce))
  }

  #signalStrays(signal: NodeJS.Signals): number {
    const strays = this.#strays()
    signalAll(strays, signal, send)
    return strays.length
  }
}

const send: SendSignal = (pid, signal) => void process.kill(pid, signal)

const schema = () =>
  prefault(
    strictObject({
      // `process.env` is no plain object.
      env: _default(custom<Environment>(isFields), () => process.env),
      pass: _default(array(string()), []),
      ledger: optional(string()),
    }),
    {},
  )

export const subprocess: PluginObject<input<ReturnType<typeof schema>>, SubprocessConfig> = {
  name: 'subprocess',
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: SubprocessConfig) {
    const service = new LocalSubprocess(config)
    // What starts nothing reaps too, but not before it has done what it was started for.
    const timer = setTimeout(() => void service.reap(), reapAfterMs).unref()
    ctx.effect(() => {
      const onExit = (): void => service.killAll()
      process.prependListener('exit', onExit)
      return async () => {
        clearTimeout(timer)
        await service.close()
        process.off('exit', onExit)
      }
    }, 'processes')
    ctx.provide('subprocess', service)
  },
}

function assertSpec({ argv, graceMs, drainMs }: Pick<SpawnSpec, 'argv' | 'graceMs' | 'drainMs'>): void {
  if (typeof argv[0] !== 'string' || argv[0] === '') throw new TypeError('a process needs a program')
  for (const ms of [graceMs, drainMs]) {
    if (!(ms > 0 && ms <= MAX_TIMER_DELAY_MS)) throw new RangeError(`${ms} ms is no time to wait`)
  }
}

function stdinMode(stdin: SpawnSpec['stdin']): 'ignore' | 'pipe' {
  return stdin === 'ignore' ? 'ignore' : 'pipe'
}

function outputMode(output: SpawnSpec['stdout']): 'inherit' | 'pipe' {
  return output === 'inherit' ? 'inherit' : 'pipe'
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch {
    return false
  }
}

function noFolder(path: string, cause?: Error): SubprocessError {
  return new SubprocessError('WORKDIR_NOT_FOUND', `no folder "${path}" to work in`, { cause })
}

function isSet(entry: [string, string | undefined]): entry is [string, string] {
  return entry[1] !== undefined
}

/** A missing folder and a missing program fail alike; this tells them apart. */
async function explain(error: Error, { argv, cwd }: Pick<SpawnSpec, 'argv' | 'cwd'>): Promise<Error> {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') {
    if (!(await isFolder(cwd))) return noFolder(cwd, error)
    return new SubprocessError('PROGRAM_NOT_FOUND', `no program "${argv[0]}"`, { cause: error })
  }
  return new SubprocessError('SPAWN_FAILED', `cannot start "${argv[0]}": ${error.message}`, { cause: error })
}
