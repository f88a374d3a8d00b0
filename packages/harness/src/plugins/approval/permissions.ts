import type { Session } from '../../core/session/index.ts'
import type { SandboxMode, SandboxPolicy } from '../sandbox/index.ts'
import type { ApprovalConfig } from './config.ts'
import type { ApprovalPolicy } from './events.ts'
import type { Permissions } from './service.ts'

/** Policies by the log of each session, and modes as the sandbox has them. */
export class LoggedPermissions implements Permissions {
  readonly #config: ApprovalConfig
  readonly #modes: SandboxPolicy

  constructor(config: ApprovalConfig, modes: SandboxPolicy) {
    this.#config = config
    this.#modes = modes
  }

  modeOf(session: Session | undefined): SandboxMode {
    return this.#modes.modeOf(session)
  }

  policyOf(session: Session | undefined): ApprovalPolicy {
    return session?.last('approval/policy')?.data.policy ?? this.#config.policy
  }

  setMode(session: Session, mode: SandboxMode): void {
    this.#modes.setMode(session, mode)
  }

  setPolicy(session: Session, policy: ApprovalPolicy): void {
    if (session.last('approval/policy')?.data.policy !== policy) session.append('approval/policy', { policy })
  }
}
