import type { Session } from '../../core/session/index.ts'
import type { ApprovalConfig } from './config.ts'
import type { ApprovalPolicy, PermissionMode } from './events.ts'
import type { Permissions } from './service.ts'

/** Modes and policies by the log of each session. */
export class LoggedPermissions implements Permissions {
  readonly #config: ApprovalConfig

  constructor(config: ApprovalConfig) {
    this.#config = config
  }

  modeOf(session: Session | undefined): PermissionMode {
    return session?.last('sandbox/mode')?.data.mode ?? this.#config.mode
  }

  policyOf(session: Session | undefined): ApprovalPolicy {
    return session?.last('approval/policy')?.data.policy ?? this.#config.policy
  }

  setMode(session: Session, mode: PermissionMode): void {
    if (session.last('sandbox/mode')?.data.mode !== mode) session.append('sandbox/mode', { mode })
  }

  setPolicy(session: Session, policy: ApprovalPolicy): void {
    if (session.last('approval/policy')?.data.policy !== policy) session.append('approval/policy', { policy })
  }
}
