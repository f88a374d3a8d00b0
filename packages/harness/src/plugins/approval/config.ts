import { _default, boolean, literal, optional, prefault, strictObject, string } from 'zod/mini'
import type { input } from 'zod/mini'
import { approvalPolicies } from './events.ts'
import type { ApprovalPolicy } from './events.ts'

export interface ApprovalConfig {
  /** Of sessions whose log says nothing else. */
  readonly policy: ApprovalPolicy
  /** Allows what would be asked, and nothing beyond the sandbox. */
  readonly yes: boolean
  /** The file that keeps a person's rules; without one there are none. Absolute. */
  readonly rules?: string | undefined
}

export const approvalSchema = () =>
  prefault(
    strictObject({
      policy: _default(literal(approvalPolicies), 'ask'),
      yes: _default(boolean(), false),
      rules: optional(string()),
    }),
    {},
  )

export type ApprovalInput = input<ReturnType<typeof approvalSchema>>
