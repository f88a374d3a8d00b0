import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Session } from '../../core/session/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import { canonical } from './canonical.ts'
import type { SandboxConfig } from './config.ts'
import type { Machine } from './env.ts'
import type { SandboxMode } from './events.ts'
import { readRefusal, writeRefusal } from './refusal.ts'
import type { PolicyRequest, SandboxBounds, SandboxExecutionPolicy, SandboxPolicy } from './service.ts'

/** Modes by the log of each session, and what follows from them for one call. */
export class LoggedPolicy implements SandboxPolicy {
  readonly #config: SandboxConfig
  readonly #machine: Machine
  readonly #grants = new WeakMap<symbol, WiderAccess>()
  readonly #temps = new WeakMap<object, string>()
  readonly #bounds = new Set<SandboxBounds>()

  constructor(config: SandboxConfig, machine: Machine) {
    this.#config = config
    this.#machine = machine
  }

  get defaultMode(): SandboxMode {
    return this.#config.mode
  }

  get hasNetwork(): boolean {
    return [...this.#bounds].some(({ network }) => network === true)
  }

  modeOf(session: Session | undefined): SandboxMode {
    return session?.last('sandbox/mode')?.data.mode ?? this.#config.mode
  }

  setMode(session: Session, mode: SandboxMode): void {
    if (session.last('sandbox/mode')?.data.mode !== mode) session.append('sandbox/mode', { mode })
  }

  extend(bounds: SandboxBounds): () => void {
    const own = { ...bounds }
    this.#bounds.add(own)
    return () => void this.#bounds.delete(own)
  }

  async resolve({ session, token }: PolicyRequest): Promise<SandboxExecutionPolicy> {
    const granted = token === undefined ? undefined : this.#grants.get(token)
    const mode = widest(this.modeOf(session), granted)
    const bounds = [...this.#bounds]
    const { reachOf } = await import('./reach.ts')
    return {
      mode,
      network: mode === 'full-access' || granted === 'network' || this.hasNetwork,
      ...reachOf({
        mode,
        folder: session?.header.cwd ?? this.#config.cwd,
        tempFolder: this.tempOf(session ?? this),
        config: this.#config,
        bounds,
        machine: this.#machine,
      }),
      ...(session && { sessionId: session.id }),
      ...(granted !== undefined && { granted }),
    }
  }

  grant(token: symbol, access: WiderAccess): void {
    this.#grants.set(token, access)
  }

  grantOf(token: symbol): WiderAccess | undefined {
    return this.#grants.get(token)
  }

  writeRefusal(policy: SandboxExecutionPolicy, path: string): string | undefined {
    return writeRefusal(policy, path)
  }

  readRefusal(policy: SandboxExecutionPolicy, path: string): string | undefined {
    return readRefusal(policy, path)
  }

  /** The temporary folder of a session, or of what belongs to none; nothing is made. */
  tempOf(owner: object): string {
    const known = this.#temps.get(owner)
    if (known !== undefined) return known
    const { home } = this.#config
    const name = `${this.#machine.pid}-${randomBytes(6).toString('hex')}`
    const temp = canonical(home === undefined ? join(tmpdir(), `dsh-${name}`) : join(home, 'tmp', name))
    this.#temps.set(owner, temp)
    return temp
  }
}

function widest(mode: SandboxMode, granted: WiderAccess | undefined): SandboxMode {
  if (granted === undefined || mode === 'full-access') return mode
  return granted === 'full-access' ? granted : 'workspace-write'
}
