import type { Session } from '../../core/session/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import { canonical } from './canonical.ts'
import type { SandboxConfig } from './config.ts'
import { startFolder } from './env.ts'
import type { SandboxMode } from './events.ts'
import { writeRefusal } from './refusal.ts'
import type { PolicyRequest, SandboxExecutionPolicy, SandboxPolicy } from './service.ts'

/** Modes by the log of each session, and what follows from them for one call. */
export class LoggedPolicy implements SandboxPolicy {
  readonly #config: SandboxConfig
  readonly #grants = new WeakMap<symbol, WiderAccess>()

  constructor(config: SandboxConfig) {
    this.#config = config
  }

  get defaultMode(): SandboxMode {
    return this.#config.mode
  }

  modeOf(session: Session | undefined): SandboxMode {
    return session?.last('sandbox/mode')?.data.mode ?? this.#config.mode
  }

  setMode(session: Session, mode: SandboxMode): void {
    if (session.last('sandbox/mode')?.data.mode !== mode) session.append('sandbox/mode', { mode })
  }

  async resolve({ session, token }: PolicyRequest): Promise<SandboxExecutionPolicy> {
    const granted = token === undefined ? undefined : this.#grants.get(token)
    const mode = widest(this.modeOf(session), granted)
    const folder = session?.header.cwd ?? this.#config.cwd
    const workspaceRoot = await canonical(folder ?? startFolder())
    return {
      mode,
      network: mode === 'full-access' || granted === 'network',
      workspaceRoot,
      writableRoots: mode === 'read-only' || folder === undefined ? [] : [workspaceRoot],
      protectedPaths: [],
      unreadablePaths: [],
      ...(session && { sessionId: session.id }),
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
}

function widest(mode: SandboxMode, granted: WiderAccess | undefined): SandboxMode {
  if (granted === undefined || mode === 'full-access') return mode
  return granted === 'full-access' ? granted : 'workspace-write'
}
