import type { CallId } from '@dsh/protocol'
import { literal, object, optional, string } from 'zod/mini'

/** Whether people are asked at all; 'never' refuses what would be asked. */
export const approvalPolicies = ['ask', 'never'] as const
export type ApprovalPolicy = (typeof approvalPolicies)[number]

export const approvalOutcomes = ['allowed-once', 'rejected', 'cancelled', 'unavailable'] as const

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** `digest` is the SHA-256, in hex, of the arguments that are asked for. */
    'approval/asked': {
      readonly id: string
      readonly toolName: string
      readonly callId?: CallId
      readonly digest?: string
      readonly reason?: string
    }
    /** Exactly one for each that was asked; 'unavailable' where nobody could answer. */
    'approval/decided': {
      readonly id: string
      readonly outcome: (typeof approvalOutcomes)[number]
      readonly reason?: string
    }
    /** From here on, in place of the configured one. */
    'approval/policy': { readonly policy: ApprovalPolicy; readonly source?: 'delegation' }
  }
}

export type ApprovalEventType = 'approval/asked' | 'approval/decided' | 'approval/policy'

/** What each event holds; fields that a later version adds are tolerated. */
export const approvalEventSchemas = () => {
  const text = optional(string())
  const source = optional(literal('delegation'))
  return {
    'approval/asked': object({ id: string(), toolName: string(), callId: text, digest: text, reason: text }),
    'approval/decided': object({ id: string(), outcome: literal(approvalOutcomes), reason: text }),
    'approval/policy': object({ policy: literal(approvalPolicies), source }),
  }
}
