import { isAbsolute } from 'node:path'
import { _default, int, lte, positive, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import type { Agent } from '../../core/agent/index.ts'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { Context, PluginObject } from '../../kernel/index.ts'
import { inertText, utf8Locale } from '../bash/index.ts'
import { judgeConfined, SandboxError } from '../sandbox/index.ts'
import type { ConfinedArgv, SandboxExecutionPolicy } from '../sandbox/index.ts'
import { PtyError } from './errors.ts'
import type { PtyBackend, PtyBackendSpec } from './service.ts'
import type { ShellDialect } from './shell-script.ts'
import { ShellSession } from './shell-session.ts'

export interface LocalPtyConfig {
  readonly rows: number
  readonly columns: number
  readonly scrollbackLines: number
  readonly scrollbackBytes: number
  readonly pollIntervalMs: number
  readonly exactProbeAfterMs: number
  readonly idleSilenceMs: number
  /** Milliseconds that a send is waited for. */
  readonly timeoutMs: number
  /** Milliseconds that a shell may take to come up. */
  readonly startMs: number
  readonly disposeGraceMs: number
}

interface Shell {
  readonly path: string
  readonly dialect: ShellDialect
}

const noBashText = 'there is no bash here; the shell is sh'
const confinedMode = (mode: string): string => `no sandbox is here to hold a shell to ${mode}`

const plainTerminal = { TERM: 'dumb', NO_COLOR: '1', PAGER: 'cat', GIT_PAGER: 'cat' }
/** What a shell would obey before it is asked anything. */
const unset = {
  ENV: undefined,
  BASH_ENV: undefined,
  SHELLOPTS: undefined,
  BASHOPTS: undefined,
  PS0: undefined,
  PS1: undefined,
  PS2: undefined,
  PROMPT_COMMAND: undefined,
  HISTFILE: undefined,
  INPUTRC: undefined,
}

/** Shells of this machine on terminals, confined as the owner's session is when they begin. */
class LocalShells implements PtyBackend {
  readonly type = 'shell'
  readonly #ctx: Context
  readonly #config: LocalPtyConfig

  constructor(ctx: Context, config: LocalPtyConfig) {
    this.#ctx = ctx
    this.#config = config
  }

  async spawn(spec: PtyBackendSpec): Promise<ShellSession> {
    const { subprocess } = this.#ctx
    const { rows, columns, disposeGraceMs: graceMs } = this.#config
    const shell = await this.#findShell()
    const policy = await this.#policyOf(spec)
    const confined = await this.#confine(shell, policy, spec.cwd)
    spec.signal?.throwIfAborted()
    const handle = await subprocess.spawnTerminal({
      argv: confined?.argv ?? argvOf(shell),
      cwd: spec.cwd,
      rows,
      columns,
      graceMs,
      wraps: confined !== undefined,
      env: { ...this.#environment(spec.owner), DSH_PTY_SESSION_ID: spec.sessionId },
    })
    const notices = shell.dialect === 'sh' ? [noBashText] : []
    const session = new ShellSession(
      handle,
      { dialect: shell.dialect, mode: policy?.mode, notices },
      this.#limits(),
    )
    await this.#untilReady(session, confined, spec.signal)
    return session
  }

  async #untilReady(
    session: ShellSession,
    confined: ConfinedArgv | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const onAbort = (): void => void session.close().catch(() => {})
    signal?.addEventListener('abort', onAbort, { once: true })
    const printed = await session.ready()
    signal?.removeEventListener('abort', onAbort)
    if (session.isReady && signal?.aborted !== true) return
    await session.close()
    signal?.throwIfAborted()
    throw failureOf(session, printed, confined)
  }

  async #findShell(): Promise<Shell> {
    const { subprocess } = this.#ctx
    try {
      return { path: await subprocess.resolveExecutable('bash'), dialect: 'bash' }
    } catch {
      return { path: await subprocess.resolveExecutable('sh'), dialect: 'sh' }
    }
  }

  /**
   * The standing one of the session: what was granted to the call that opens a shell is not granted to what is sent to it
   * later. Where no sandbox works each of these is asked for by itself, and nothing can be held to less.
   */
  async #policyOf({
    owner: { session },
    token,
  }: PtyBackendSpec): Promise<SandboxExecutionPolicy | undefined> {
    const policies = this.#ctx.get('sandboxPolicy')
    if (policies === undefined) return undefined
    const standing = await policies.resolve({ session })
    if (standing.mode === 'full-access' || token === undefined) return standing
    const readiness = await this.#ctx.get('sandbox')?.readiness()
    return readiness?.isReady === true ? standing : await policies.resolve({ session, token })
  }

  async #confine(
    shell: Shell,
    policy: SandboxExecutionPolicy | undefined,
    cwd: string,
  ): Promise<ConfinedArgv | undefined> {
    if (policy === undefined || policy.mode === 'full-access') return undefined
    const refusal = isAbsolute(cwd) ? this.#ctx.sandboxPolicy.readRefusal(policy, cwd) : undefined
    if (refusal !== undefined) throw new PtyError('SHELL_FAILED', refusal)
    const sandbox = this.#ctx.get('sandbox')
    if (sandbox === undefined) throw new SandboxError('SANDBOX_UNAVAILABLE', confinedMode(policy.mode))
    return await sandbox.confine(argvOf(shell), policy, { terminal: true })
  }

  #environment(owner: Agent): Readonly<Record<string, string | undefined>> {
    const { subprocess } = this.#ctx
    return {
      ...unset,
      ...utf8Locale(subprocess.env, process.platform),
      ...plainTerminal,
      ...this.#ctx.get('bashEnv')?.collect({ agent: owner }),
    }
  }

  #limits() {
    const { scrollbackLines: lines, scrollbackBytes: bytes, ...limits } = this.#config
    return { ...limits, scrollback: { lines, bytes } }
  }
}

function argvOf({ path, dialect }: Shell): [program: string, ...args: string[]] {
  return dialect === 'bash' ? [path, '--noprofile', '--norc', '--noediting', '-i'] : [path, '-i']
}

function failureOf(session: ShellSession, printed: string, confined: ConfinedArgv | undefined): Error {
  const { status } = session
  const text = inertText(printed).trim()
  const said = text === '' ? '' : `: ${text}`
  if (status.state === 'running') return new PtyError('SHELL_FAILED', `the shell does not answer${said}`)
  const judgement = confined && judgeConfined({ ...status, stderr: printed, confined })
  if (judgement?.kind === 'runner-failed')
    return new SandboxError('SANDBOX_UNAVAILABLE', `the sandbox failed: ${inertText(judgement.line).trim()}`)
  return new PtyError('SHELL_FAILED', `the shell ended at its start${said}`)
}

export const localPtyFields = () => ({
  rows: side(40),
  columns: side(160),
  scrollbackLines: count(10_000),
  scrollbackBytes: count(4 * 2 ** 20),
  pollIntervalMs: milliseconds(50),
  exactProbeAfterMs: milliseconds(150),
  idleSilenceMs: milliseconds(3000),
  timeoutMs: milliseconds(30_000),
  startMs: milliseconds(10_000),
  disposeGraceMs: milliseconds(3000),
})

const schema = () => prefault(strictObject(localPtyFields()), {})

/** The backend `shell` of `ctx.pty`. */
export const localPty: PluginObject<input<ReturnType<typeof schema>>, LocalPtyConfig> = {
  name: 'pty-local',
  inject: { required: ['pty', 'subprocess'], optional: ['bashEnv', 'sandbox', 'sandboxPolicy'] },
  get Config() {
    return schema()
  },
  apply(ctx: Context, config: LocalPtyConfig) {
    ctx.pty.registerBackend(new LocalShells(ctx, config))
  },
}

function side(fallback: number) {
  return _default(int().check(positive(), lte(1000)), fallback)
}

function count(fallback: number) {
  return _default(int().check(positive()), fallback)
}

function milliseconds(fallback: number) {
  return _default(int().check(positive(), lte(MAX_TIMER_DELAY_MS)), fallback)
}
