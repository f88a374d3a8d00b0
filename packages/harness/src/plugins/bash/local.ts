import { _default, int, lte, minLength, positive, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import type { CaptureSpec, ProcessExit, SubprocessHandle } from '../subprocess/index.ts'
import { LiveText } from './live.ts'
import { utf8Locale } from './locale.ts'
import type { Bash, BashRequest, BashResult, BashSpec, BashStream } from './service.ts'

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
const keptHeadBytes = 4 * 2 ** 20
const keptTailBytes = 2 ** 20

const plainTerminal = { NO_COLOR: '1', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat' }

/** Words of commands that leave something running. A wrong guess costs a look at the processes, or a note. */
const leavesRunning = /(^|[^&<>|])&(?![&>])|\b(setsid|nohup|disown|daemon)/

/** Runs commands through `ctx.subprocess`: `bash` from the PATH, else `sh`. */
export class LocalBash implements Bash {
  readonly #ctx: Context
  readonly #config: LocalBashConfig
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
    try {
      return await this.#runIn(this.#shell, spec)
    } catch (error) {
      if (this.#shell === 'sh' || (error as { code?: unknown }).code !== 'PROGRAM_NOT_FOUND') throw error
      this.#shell = 'sh'
      return await this.#runIn('sh', spec)
    }
  }

  async #runIn(shell: Shell, spec: BashSpec): Promise<BashResult> {
    const { subprocess } = this.#ctx
    const { graceMs, drainMs } = this.#config
    const live = spec.onOutput && liveTexts(spec.onOutput)
    const startedAt = performance.now()
    const handle = subprocess.spawn({
      argv: [shell, '-c', spec.command],
      cwd: spec.workdir,
      stdin: 'ignore',
      stdout: capture(live?.stdout),
      stderr: capture(live?.stderr),
      graceMs,
      drainMs,
      env: { ...utf8Locale(subprocess.env, process.platform), ...plainTerminal },
    })
    const { exit, cause } = await watch(handle, spec, graceMs)
    live?.stdout.end()
    live?.stderr.end()
    const mayHaveLeft = exit.pipesHeld || leavesRunning.test(spec.command) || handle.hasGroup()
    const { stdout, stderr } = handle.collected
    if (stdout === undefined || stderr === undefined) throw new TypeError('the output was not captured')
    return {
      exitCode: exit.exitCode,
      signal: exit.signal,
      timedOut: cause === 'timeout',
      aborted: cause === 'abort',
      timeoutMs: spec.timeoutMs,
      durationMs: Math.round(performance.now() - startedAt),
      stdout,
      stderr,
      survivors: mayHaveLeft ? handle.survivors() : [],
      shell,
    }
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
  inject: ['subprocess'],
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

function capture(live: LiveText | undefined): CaptureSpec {
  const budget = { headBytes: keptHeadBytes, tailBytes: keptTailBytes }
  return live === undefined ? budget : { ...budget, onData: bytes => live.push(bytes) }
}

function liveTexts(tell: (stream: BashStream, text: string) => void): Record<BashStream, LiveText> {
  return {
    stdout: new LiveText(text => tell('stdout', text)),
    stderr: new LiveText(text => tell('stderr', text)),
  }
}

/** Ends the tree when the time is over or the caller gives up, and then waits until nothing of it runs. */
async function watch(
  handle: SubprocessHandle,
  { timeoutMs, signal }: BashSpec,
  graceMs: number,
): Promise<{ readonly exit: ProcessExit; readonly cause: 'timeout' | 'abort' | undefined }> {
  let cause: 'timeout' | 'abort' | undefined
  const end = (why: 'timeout' | 'abort'): void => {
    cause ??= why
    handle.terminate()
  }
  const onAbort = (): void => end('abort')
  const timer = setTimeout(() => {
    // A command that ended in time is not late because of what it left running.
    if (!handle.hasExited) end('timeout')
  }, timeoutMs)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  try {
    const exit = await handle.done
    if (cause !== undefined) await handle.waitForExit(AbortSignal.timeout(graceMs + 2000))
    return { exit, cause }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}
