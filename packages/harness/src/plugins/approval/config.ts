import { _default, boolean, literal, optional, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { approvalPolicies, permissionModes } from './events.ts'
import type { ApprovalPolicy, PermissionMode } from './events.ts'

export interface ApprovalConfig {
  /** Of sessions whose log says nothing else. */
  readonly mode: PermissionMode
  readonly policy: ApprovalPolicy
  /** Allows what would be asked. Never changes where files may be written. */
  readonly yes: boolean
  /** The workspace of sessions that have no folder. */
  readonly cwd?: string | undefined
}

export const approvalSchema = () =>
  prefault(
    strictObject({
      mode: _default(literal(permissionModes), 'workspace-write'),
      policy: _default(literal(approvalPolicies), 'ask'),
      yes: _default(boolean(), false),
      cwd: optional(string()),
    }),
    {},
  )

export type ApprovalInput = input<ReturnType<typeof approvalSchema>>
