import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { SessionId } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type { SandboxExecutionPolicy } from '../sandbox/index.ts'
import { findPrograms } from './programs.ts'
import { fitsRunner } from './runner.ts'
import type { RunningShell, ShellCommand } from './service.ts'
import { SessionShell } from './session-shell.ts'
import type { ShellHost } from './session-shell.ts'

export interface ShellsConfig {
  /** Sandboxes of all sessions together. */
  readonly sandboxes: number
  /** Commands in one sandbox at a time. */
  readonly commands: number
  readonly idleMs: number
  readonly beginMs: number
}

/** After so many in a row that could not be made none is tried any more. */
const maxFailures = 3

/** The shells of all sessions. */
export class WarmShells {
  readonly #ctx: Pick<Context, 'sandbox' | 'subprocess'>
  readonly #config: ShellsConfig
  readonly #shells = new Map<SessionId, SessionShell>()
  #host: Promise<ShellHost | undefined> | undefined
  #failures = 0

  constructor(ctx: Pick<Context, 'sandbox' | 'subprocess'>, config: ShellsConfig) {
    this.#ctx = ctx
    this.#config = config
  }

  async run(command: ShellCommand): Promise<RunningShell | undefined> {
    const { sessionId, granted } = command.policy
    if (sessionId === undefined || granted !== undefined) return undefined
    if (!fitsRunner(command.command, command.cwd) || this.#failures >= maxFailures) return undefined
    this.#host ??= this.#findHost()
    const host = await this.#host
    if (host === undefined) return undefined
    const shell = this.#shells.get(sessionId) ?? new SessionShell(host)
    this.#shells.set(sessionId, shell)
    return await shell.run(command)
  }

  /** Of a session that is over. */
  async forget(id: SessionId): Promise<void> {
    const shell = this.#shells.get(id)
    this.#shells.delete(id)
    await shell?.close()
  }

  async close(): Promise<void> {
    this.#host = Promise.resolve(undefined)
    await Promise.all([...this.#shells.values()].map(shell => shell.close()))
  }

  /** Undefined where nothing can be kept: no bubblewrap, or no program for it. */
  async #findHost(): Promise<ShellHost | undefined> {
    const { sandbox, subprocess } = this.#ctx
    const readiness = await sandbox.readiness()
    const programs = findPrograms()
    if (!readiness.isReady || readiness.runner !== 'bubblewrap' || programs === undefined) return undefined
    const tried: ShellHost['tried'] = outcome => {
      this.#failures = outcome === 'failed' ? this.#failures + 1 : 0
    }
    const admit = (): boolean => this.#admit()
    return { ...this.#config, sandbox, subprocess, programs, admit, folderFor, tried }
  }

  /** One of another session that is not in use makes room for one that is wanted. */
  #admit(): boolean {
    const shells = [...this.#shells.values()]
    const count = shells.reduce((sum, { sandboxes }) => sum + sandboxes, 0)
    return count < this.#config.sandboxes || shells.some(shell => shell.letGo())
  }
}

/** Beside the temporary folder of the session, where no sandbox sees it; what is left there by a crash is swept away. */
function folderFor({ tempFolder }: SandboxExecutionPolicy): string {
  const unique = `${process.pid}-${randomBytes(6).toString('hex')}`
  if (tempFolder === undefined || dirname(tempFolder) === tmpdir()) return join(tmpdir(), `dsh-${unique}`)
  return join(dirname(tempFolder), unique)
}
