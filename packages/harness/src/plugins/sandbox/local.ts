import type { Environment } from './config.ts'
import type { Confiner } from './confiner.ts'
import { thisMachine } from './env.ts'
import type { Machine } from './env.ts'
import type {
  ConfinedArgv,
  ConfineOptions,
  Sandbox,
  SandboxExecutionPolicy,
  SandboxReadiness,
} from './service.ts'

/** Confines processes of this machine; what does it is loaded with the first. */
export class LocalSandbox implements Sandbox {
  readonly #machine: Machine
  readonly #env: Environment
  readonly #loaded: { confiner?: Confiner } = {}

  /** `env` is that of the person. */
  constructor(machine: Machine, env: Environment = {}) {
    this.#machine = machine
    this.#env = env
  }

  async readiness(): Promise<SandboxReadiness> {
    return await (await this.#confiner()).readiness()
  }

  async confine(
    argv: ConfinedArgv['argv'],
    policy: SandboxExecutionPolicy,
    options: ConfineOptions = {},
  ): Promise<ConfinedArgv> {
    if (policy.mode === 'full-access')
      return { argv, enforcement: 'full', denialSignatures: [], runnerFailureRules: [] }
    return await (await this.#confiner()).confine(argv, policy, options)
  }

  /** Takes away what stands in the world for this plugin alone. */
  close(): void {
    this.#loaded.confiner?.close()
  }

  /** Nobody needs the temporary folder of a session any more. */
  forget(tempFolder: string): void {
    this.#loaded.confiner?.forget(tempFolder)
  }

  async #confiner(): Promise<Confiner> {
    const { Confiner } = await import('./confiner.ts')
    return (this.#loaded.confiner ??= new Confiner(this.#machine, this.#env))
  }
}

/** Whether this machine can confine; looks anew. */
export async function lookForSandbox(): Promise<SandboxReadiness> {
  return await new LocalSandbox(thisMachine()).readiness()
}
