import { _default, boolean, literal, prefault, strictObject } from 'zod/mini'
import type { input } from 'zod/mini'
import { approvalPolicies } from './events.ts'
import type { ApprovalPolicy } from './events.ts'

export interface ApprovalConfig {
  /** Of sessions whose log says nothing else. */
  readonly policy: ApprovalPolicy
  /** Allows what would be asked. Never changes where files may be written. */
  readonly yes: boolean
}

export const approvalSchema = () =>
  prefault(
    strictObject({
      policy: _default(literal(approvalPolicies), 'ask'),
      yes: _default(boolean(), false),
    }),
    {},
  )

export type ApprovalInput = input<ReturnType<typeof approvalSchema>>
