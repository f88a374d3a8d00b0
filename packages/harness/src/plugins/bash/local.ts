import { _default, int, lte, minLength, positive, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type { SandboxExecutionPolicy } from '../sandbox/index.ts'
import type { RunningShell } from '../sandbox-shells/index.ts'
import type { SubprocessHandle } from '../subprocess/index.ts'
import { prepare } from './confine.ts'
import type { Prepared } from './confine.ts'
import { BashError } from './errors.ts'
import { utf8Locale } from './locale.ts'
import { captureFor, LiveOutput, RunningCommand } from './running.ts'
import type { Bash, BashProcess, BashRequest, BashResult, BashSpec } from './service.ts'

export interface LocalBashConfig {
  /** Where commands run that name no folder. Default: the folder of the process. */
  readonly cwd: string
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
  /** Milliseconds between asking a command to end and ending it. */
  readonly graceMs: number
  /** Milliseconds that a command which ended is waited for, while what it left running holds its output. */
  readonly drainMs: number
}

type Shell = BashResult['shell']

/** Kept of each stream: what fits into a result is shown, the rest goes to the session's artifacts. */
const kept = { headBytes: 4 * 2 ** 20, tailBytes: 2 ** 20 }

const plainTerminal = {
  NO_COLOR: '1',
  TERM: 'dumb',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  // A message that git made up itself is taken as it is.
  GIT_EDITOR: 'true',
  GIT_SEQUENCE_EDITOR: 'echo set GIT_SEQUENCE_EDITOR to a command that edits the list >&2; false',
}

/** Runs commands through `ctx.subprocess`: `bash` from the PATH, else `sh`. */
export class LocalBash implements Bash {
  readonly #ctx: Context
  readonly #config: LocalBashConfig
  readonly #found = new Map<Shell, string>()
  #shell: Shell = 'bash'

  constructor(ctx: Context, config: LocalBashConfig) {
    this.#ctx = ctx
    this.#config = config
  }

  resolve({ command, workdir, timeoutMs = this.#config.timeoutMs }: BashRequest): BashSpec {
    if (!(timeoutMs > 0 && timeoutMs < Infinity))
      throw new RangeError(`a time-out of ${timeoutMs} ms is none`)
    return {
      command,
      workdir: workdir ?? this.#config.cwd,
      timeoutMs: Math.min(timeoutMs, this.#config.maxTimeoutMs),
    }
  }

  async run(spec: BashSpec): Promise<BashResult> {
    return (await this.start(spec)).result
  }

  async start(spec: BashSpec): Promise<BashProcess> {
    try {
      return await this.#startIn(this.#shell, spec)
    } catch (error) {
      if (this.#shell === 'sh' || (error as { code?: unknown }).code !== 'PROGRAM_NOT_FOUND') throw error
      this.#shell = 'sh'
      return await this.#startIn('sh', spec)
    }
  }

  async #startIn(shell: Shell, spec: BashSpec): Promise<BashProcess> {
    const { subprocess } = this.#ctx
    const { graceMs, drainMs } = this.#config
    const program = await this.#programOf(shell, spec)
    const live = spec.onOutput && new LiveOutput(spec.onOutput)
    const parts = {
      cwd: spec.workdir,
      stdout: captureFor(kept, live?.stdout),
      stderr: captureFor(kept, live?.stderr),
      graceMs,
      drainMs,
      env: {
        ...utf8Locale(subprocess.env, process.platform),
        ...plainTerminal,
        ...spec.env,
      },
    }
    const { command, policy } = spec
    if (shell === 'bash' && policy !== undefined && policy.mode !== 'full-access') {
      const shared = await this.#ctx.get('sandboxShells')?.run({ ...parts, shell: program, command, policy })
      if (shared !== undefined)
        return new RunningCommand({ ...sharedParts(shared, policy), spec, shell, graceMs, live })
    }
    const prepared = await prepare(this.#ctx, [program, '-c', command], spec)
    spec.signal?.throwIfAborted()
    const wraps = prepared.confined !== undefined
    const handle = subprocess.spawn({ ...parts, argv: prepared.argv, stdin: 'ignore', wraps })
    if (handle.pid === -1) await rejectedStart(handle, prepared)
    return new RunningCommand({ handle, spec, prepared, shell, graceMs, live })
  }

  /** A runner would not tell that there is no such shell, so for one it is looked up, once. */
  async #programOf(shell: Shell, { policy }: BashSpec): Promise<string> {
    if (policy === undefined || policy.mode === 'full-access') return shell
    const found = this.#found.get(shell) ?? (await this.#ctx.subprocess.resolveExecutable(shell))
    this.#found.set(shell, found)
    return found
  }
}

function sharedParts({ handle, confined: by }: RunningShell, policy: SandboxExecutionPolicy) {
  return { handle, prepared: { argv: by.argv, confined: { by, policy }, isShared: true } }
}

/** Says why nothing was started; a missing program is the runner's own where one should have confined the command. */
async function rejectedStart(handle: SubprocessHandle, { confined, argv }: Prepared): Promise<void> {
  try {
    await handle.done
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (confined === undefined || code === 'WORKDIR_NOT_FOUND') throw error
    throw new BashError('SANDBOX_UNAVAILABLE', `the sandbox could not be started: ${argv[0]}`, {
      cause: error,
    })
  }
}

export const localBashFields = () => ({
  cwd: _default(string().check(minLength(1)), () => process.cwd()),
  timeoutMs: milliseconds(60_000),
  maxTimeoutMs: milliseconds(600_000),
  graceMs: milliseconds(3000),
  drainMs: milliseconds(500),
})

const schema = () => prefault(strictObject(localBashFields()), {})

export const localBash: PluginObject<input<ReturnType<typeof schema>>, LocalBashConfig> = {
  name: 'bash-local',
  inject: { required: ['subprocess'], optional: ['sandbox', 'sandboxShells'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: LocalBashConfig) {
    ctx.provide('bash', new LocalBash(ctx, config))
  },
}

function milliseconds(fallback: number) {
  return _default(int().check(positive(), lte(MAX_TIMER_DELAY_MS)), fallback)
}
