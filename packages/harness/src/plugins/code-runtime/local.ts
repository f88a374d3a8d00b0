import { readThrown } from '../../core/tools/index.ts'
import { HarnessError } from '../../kernel/index.ts'
import type { Context } from '../../kernel/index.ts'
import type { ConfinedArgv, SandboxExecutionPolicy } from '../sandbox/index.ts'
import type { Argv, ProgramLanguage } from './language.ts'
import { limited } from './limits.ts'
import { readBindings } from './namespaces.ts'
import { ProgramRun } from './run.ts'
import type { RunLimits } from './run.ts'
import type { CodeFailureKind, CodeResult, CodeRun, CodeRuntime } from './service.ts'

/**
 * Runs programs as processes of `ctx.subprocess`, each under `ctx.sandbox` where that is ready: reading is all it may
 * do, and there is no network. Where nothing confines, only a policy of full access lets a program run.
 */
export class LocalCodeRuntime implements CodeRuntime {
  readonly isolation = 'process'
  readonly #ctx: Context
  readonly #language: ProgramLanguage
  readonly #limits: RunLimits
  readonly #end = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor(ctx: Context, language: ProgramLanguage, limits: RunLimits) {
    this.#ctx = ctx
    this.#language = language
    this.#limits = limits
  }

  get language(): CodeRuntime['language'] {
    return this.#language.language
  }

  async run(run: CodeRun): Promise<CodeResult> {
    if (this.#end.signal.aborted)
      throw new HarnessError('CODE_RUNTIME_CLOSED', 'no program can be run: the service is closed')
    const working = this.#run(run)
    this.#running.add(working)
    try {
      return await working
    } finally {
      this.#running.delete(working)
    }
  }

  /** Ends every program and waits for that. */
  async close(): Promise<void> {
    this.#end.abort()
    await Promise.allSettled(this.#running)
  }

  async #run({ program, bindings: given, signal, policy }: CodeRun): Promise<CodeResult> {
    const bindings = readBindings(given)
    const signals = [this.#end.signal, ...(signal === undefined ? [] : [signal])]
    const { prepare, hasBigIntegers } = this.#language
    const prepared = prepare(program, bindings.shapes)
    if ('problem' in prepared) return failed('exception', prepared.problem)
    try {
      const { argv, confined } = await this.#argv(policy)
      const process = new ProgramRun(this.#ctx.subprocess, {
        argv,
        confined,
        bindings,
        hasBigIntegers,
        source: prepared.source,
        cwd: policy?.workspaceRoot ?? '/',
        limits: this.#limits,
        signal: AbortSignal.any(signals),
      })
      return await process.run()
    } catch (error) {
      return failed('worker-exit', readThrown(error).message)
    }
  }

  async #argv(
    given: SandboxExecutionPolicy | undefined,
  ): Promise<{ argv: Argv; confined: ConfinedArgv | undefined }> {
    const { subprocess } = this.#ctx
    const { cpuSeconds } = this.#limits
    const others = this.#language.memoryLimits(this.#limits)
    const argv = limited(await this.#language.argv(subprocess, this.#limits), { cpuSeconds, others })
    const sandbox = this.#ctx.get('sandbox')
    const policy = given ?? (await this.#ctx.get('sandboxPolicy')?.resolve({}))
    const readiness = (await sandbox?.readiness()) ?? noSandbox
    if (sandbox === undefined || policy === undefined || !readiness.isReady) {
      if (policy?.mode === 'full-access') return { argv, confined: undefined }
      const { reason } = readiness.isReady ? noSandbox : readiness
      throw new HarnessError('SANDBOX_UNAVAILABLE', `nothing here can confine a program: ${reason}`)
    }
    const confined = await sandbox.confine(argv, narrowed(policy))
    const [runner, ...args] = confined.argv
    // The process gets no PATH by which its program could be found.
    const found = await subprocess.resolveExecutable(runner)
    return { argv: [found, ...args], confined }
  }
}

const noSandbox = { isReady: false, reason: 'no sandbox is loaded' } as const

/** What it lets be read, and nothing else. */
function narrowed(policy: SandboxExecutionPolicy): SandboxExecutionPolicy {
  const { workspaceRoot, unreadablePaths, readablePaths, sessionId } = policy
  return {
    mode: 'read-only',
    network: false,
    workspaceRoot,
    writableRoots: [],
    protectedPaths: [],
    unreadablePaths,
    readablePaths,
    ...(sessionId && { sessionId }),
  }
}

function failed(kind: CodeFailureKind, message: string): CodeResult {
  return { logs: [], error: { kind, message } }
}
