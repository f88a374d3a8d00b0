import { approvalPolicies } from '../../approval/events.ts'
import type { ApprovalPolicy } from '../../approval/events.ts'
import { sandboxModes } from '../../sandbox/events.ts'
import type { SandboxMode } from '../../sandbox/events.ts'
import { isFields } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

/** What the log settled; null where the configuration decides. */
export interface LoggedPermissions {
  readonly mode: SandboxMode | null
  readonly policy: ApprovalPolicy | null
}

declare module '../projection.ts' {
  interface ProjectionStates {
    permissions: LoggedPermissions
  }
}

export const permissionsUnit: ProjectionUnit<LoggedPermissions, 'sandbox/mode' | 'approval/policy'> = {
  key: 'permissions',
  stateVersion: 1,
  fold: {
    name: 'permissions',
    types: ['sandbox/mode', 'approval/policy'],
    init: () => ({ mode: null, policy: null }),
    apply: (state, event) =>
      event.type === 'sandbox/mode'
        ? { ...state, mode: event.data.mode }
        : { ...state, policy: event.data.policy },
  },
  isState: (value): value is LoggedPermissions =>
    isFields(value) &&
    [null, ...sandboxModes].includes(value['mode'] as SandboxMode) &&
    [null, ...approvalPolicies].includes(value['policy'] as ApprovalPolicy),
}
