import { HarnessError, messageOf } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import { judgeConfined } from '../sandbox/index.ts'
import type { ConfinedArgv, SandboxExecutionPolicy } from '../sandbox/index.ts'
import type { CapturedOutput, ProcessExit, SubprocessHandle } from '../subprocess/index.ts'
import type { HookExit } from './codec.ts'
import type { HookHandler } from './hook-file.ts'
import { unconfinedText } from './text.ts'

export interface HookRequest {
  /** What it reads. */
  readonly payload: string
  readonly policy: SandboxExecutionPolicy
  readonly folder: string
  readonly timeoutMs: number
  /** Ends it. */
  readonly signal: AbortSignal
  /** Whether it may run without a sandbox where none works. */
  readonly mayBeUnconfined: boolean
}

export interface HookRun extends HookExit {
  /** Why it gave nothing to go by. */
  readonly problem?: string
  readonly isCancelled: boolean
  readonly durationMs: number
}

type Argv = readonly [program: string, ...args: string[]]

interface Started {
  readonly handle: SubprocessHandle
  /** Undefined where nothing holds it. */
  readonly confined: ConfinedArgv | undefined
}

interface Ended {
  readonly exit: ProcessExit
  /** Of what ended it, where it did not end by itself. */
  readonly cause: 'timeout' | 'abort' | undefined
}

/** Kept of standard output, and of standard error; what comes behind is counted and gone. */
const stdoutBytes = 256 * 1024
const stderrBytes = 64 * 1024
const graceMs = 1000
const drainMs = 500
/** How long what was told to end is waited for. */
const patienceMs = 3000

/**
 * Runs one hook under the policy and in the folder of its session, with its payload on standard input. Never rejects.
 * What it leaves running ends with it.
 */
export async function runHook(ctx: Context, handler: HookHandler, request: HookRequest): Promise<HookRun> {
  const begun = performance.now()
  const done = (run: Omit<HookRun, 'durationMs'>): HookRun => ({
    ...run,
    durationMs: Math.round(performance.now() - begun),
  })
  const nothing = { exitCode: undefined, stdout: '', stderr: '' }
  try {
    request.signal.throwIfAborted()
    const started = await start(ctx, handler, request)
    const ended = await waitFor(started, request)
    return done(toRun(started, ended, request))
  } catch (error) {
    const isCancelled = request.signal.aborted
    return done({ ...nothing, isCancelled, problem: isCancelled ? 'it was cancelled' : messageOf(error) })
  }
}

async function start(ctx: Context, handler: HookHandler, request: HookRequest): Promise<Started> {
  const { policy, folder, payload, signal } = request
  const argv: Argv = [...(await shellOf(ctx)), '-c', handler.command]
  const confined = await confine(ctx, argv, request)
  signal.throwIfAborted()
  const folders = handler.dialect.folderVariables.map(name => [name, folder] as const)
  const handle = ctx.subprocess.spawn({
    argv: confined?.argv ?? argv,
    cwd: folder,
    stdin: { data: payload },
    stdout: { headBytes: stdoutBytes, tailBytes: 0 },
    stderr: { headBytes: stderrBytes, tailBytes: 0 },
    graceMs,
    drainMs,
    wraps: confined !== undefined,
    // The shell expands them: whatever a path holds, no command line is made of it.
    env: { ...handler.env, ...Object.fromEntries(folders) },
  })
  return { handle, confined: policy.mode === 'full-access' ? undefined : confined }
}

async function confine(
  ctx: Context,
  argv: Argv,
  { policy, mayBeUnconfined }: HookRequest,
): Promise<ConfinedArgv | undefined> {
  if (policy.mode === 'full-access') return undefined
  const sandbox = ctx.get('sandbox')
  const readiness = (await sandbox?.readiness()) ?? { isReady: false, reason: 'none is loaded' }
  if (sandbox !== undefined && readiness.isReady) return await sandbox.confine(argv, policy)
  if (mayBeUnconfined) return undefined
  throw new HarnessError('SANDBOX_UNAVAILABLE', unconfinedText)
}

/** Looked up, since a runner would not tell that there is none. */
async function shellOf(ctx: Context): Promise<Argv> {
  const { subprocess } = ctx
  try {
    // A bash whose input is a socket, as pipes of Node are, takes itself for a remote shell and reads ~/.bashrc.
    return [await subprocess.resolveExecutable('bash'), '--norc']
  } catch {
    return [await subprocess.resolveExecutable('sh')]
  }
}

async function waitFor({ handle, confined }: Started, { timeoutMs, signal }: HookRequest): Promise<Ended> {
  let cause: Ended['cause']
  const end = (why: NonNullable<Ended['cause']>): void => {
    if (handle.hasExited) return
    cause ??= why
    handle.terminate()
  }
  const onAbort = (): void => end('abort')
  const timer = setTimeout(() => end('timeout'), timeoutMs)
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    const exit = await handle.done
    // A sandbox takes along what is in it.
    if (confined === undefined || exit.pipesHeld || cause !== undefined) {
      handle.terminate()
      await handle.waitForExit(AbortSignal.timeout(patienceMs))
    }
    return { exit, cause }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

function toRun(
  { handle, confined }: Started,
  { exit, cause }: Ended,
  { timeoutMs }: HookRequest,
): Omit<HookRun, 'durationMs'> {
  const stdout = textIn(handle.collected.stdout)
  const stderr = textIn(handle.collected.stderr)
  const { exitCode, signal } = exit
  const said = { stdout, stderr, isCancelled: cause === 'abort' }
  if (cause === 'abort') return { ...said, exitCode: undefined, problem: 'it was cancelled' }
  if (cause === 'timeout')
    return { ...said, exitCode: undefined, problem: `it did not end within ${timeoutMs / 1000} s` }
  if (exitCode === null) return { ...said, exitCode: undefined, problem: `it was ended by ${signal}` }
  const judged = confined && judgeConfined({ exitCode, signal, stderr, confined })
  if (judged?.kind === 'runner-failed')
    return { ...said, exitCode: undefined, problem: `the sandbox failed: ${judged.line.trim()}` }
  const { totalBytes = 0 } = handle.collected.stdout ?? {}
  // Where it ends nobody knows, so neither what it says.
  if (exitCode === 0 && totalBytes > stdoutBytes && stdout.trimStart().startsWith('{'))
    return { ...said, exitCode, stdout: '', problem: `it printed more than ${stdoutBytes} bytes of JSON` }
  return { ...said, exitCode }
}

function textIn(output: CapturedOutput | undefined): string {
  if (output === undefined) return ''
  return Buffer.from(output.ends().head).toString('utf8')
}
