import type { ConfinedArgv, Sandbox, SandboxExecutionPolicy } from '../sandbox/index.ts'
import type { Subprocess } from '../subprocess/index.ts'
import { Pipes } from './pipes.ts'
import type { Programs } from './programs.ts'
import { fitsBash, insideFolder, runnerArgv } from './runner.ts'
import type { RunningShell, ShellCommand } from './service.ts'
import { WarmSandbox } from './warm-sandbox.ts'
import type { WarmLimits } from './warm-sandbox.ts'

export interface ShellHost extends WarmLimits {
  readonly sandbox: Sandbox
  readonly subprocess: Subprocess
  readonly programs: Programs
  /** Milliseconds after which a sandbox ends in which nothing runs. */
  readonly idleMs: number
  /** Makes room for one more sandbox; false where there is none. */
  readonly admit: () => boolean
  /** A path for what is shared with a sandbox; nothing is there yet. */
  readonly folderFor: (policy: SandboxExecutionPolicy) => string
  /** Hears what came of each sandbox that was to be made. */
  readonly tried: (outcome: 'ready' | 'failed') => void
}

/** A world with its environment and shell; equal keys say that one sandbox does for both. */
interface World {
  readonly confined: ConfinedArgv
  readonly folder: string
  readonly key: string
}

/** What runs the commands of one session: nothing, until two that follow each other would run in the same world. */
export class SessionShell {
  readonly #host: ShellHost
  #count = 0
  #key: string | undefined
  #sandbox: WarmSandbox | undefined
  /** All that have not ended yet, also those that take no more commands. */
  readonly #all = new Set<WarmSandbox>()
  #starting: Promise<void> | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(host: ShellHost) {
    this.#host = host
  }

  get sandboxes(): number {
    return this.#all.size + (this.#starting === undefined ? 0 : 1)
  }

  async run(command: ShellCommand): Promise<RunningShell | undefined> {
    // Many a session has one command only, and that is not to pay for a second.
    if (this.#count++ === 0 || this.#starting !== undefined || this.#isClosed) return undefined
    const sandbox = this.#sandbox?.isOpen === true ? this.#sandbox : undefined
    const world = await this.#worldOf(command, sandbox?.folder ?? this.#host.folderFor(command.policy))
    if (world === undefined) return undefined
    const isSame = this.#key === undefined || this.#key === world.key
    this.#key = world.key
    if (sandbox === undefined) {
      // Beside this command, not before it.
      if (isSame) this.#start(world, command)
      return undefined
    }
    if (isSame && sandbox.isIntact) return await sandbox.run(command)
    sandbox.retire()
    return undefined
  }

  /** Ends the sandbox if nothing runs in it. True when it does. */
  letGo(): boolean {
    const sandbox = this.#sandbox
    if (sandbox === undefined || sandbox.commands > 0 || sandbox.left().length > 0) return false
    sandbox.retire()
    return true
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#starting
    await Promise.all([...this.#all].map(sandbox => sandbox.close()))
  }

  /** Undefined where a sandbox that serves several commands cannot be like one of each. */
  async #worldOf({ env, shell, policy }: ShellCommand, folder: string): Promise<World | undefined> {
    const { sandbox, subprocess, programs } = this.#host
    const all = { ...subprocess.env, ...env }
    if (!fitsBash(all)) return undefined
    const argv = runnerArgv({ setsid: programs.setsid, shell })
    const confined = await sandbox.confine(argv, policy, { folder: { from: folder, at: insideFolder } })
    const parts = confined.argv.map(part => (part === folder ? '' : part))
    return { confined, folder, key: JSON.stringify([parts, all]) }
  }

  #start(world: World, command: ShellCommand): void {
    if (this.#starting !== undefined || this.#isClosed || !this.#host.admit()) return
    this.#starting = this.#open(world, command)
      .catch(() => this.#host.tried('failed'))
      .finally(() => (this.#starting = undefined))
  }

  async #open({ confined, folder }: World, command: ShellCommand): Promise<void> {
    const pipes = new Pipes(folder, this.#host.subprocess, this.#host.programs)
    try {
      await pipes.create()
      if (this.#isClosed) return await pipes.remove()
      const onIdle = (): void => this.#watch()
      const sandbox = new WarmSandbox({ ...this.#host, limits: this.#host, pipes, onIdle }, confined, command)
      this.#all.add(sandbox)
      void sandbox.ended.then(() => this.#all.delete(sandbox))
      await sandbox.ready()
      this.#sandbox = sandbox
      this.#host.tried('ready')
      this.#watch()
    } catch (error) {
      await pipes.remove()
      throw error
    }
  }

  #watch(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      // What a command left running is a use of it.
      if (this.#sandbox?.isOpen === true && !this.letGo()) this.#watch()
    }, this.#host.idleMs).unref()
  }
}
