import type { CallId } from '@dsh/protocol'
import { array, literal, looseObject, object, optional, string } from 'zod/mini'

/** Whether people are asked at all; 'never' refuses what would be asked. */
export const approvalPolicies = ['ask', 'never'] as const
export type ApprovalPolicy = (typeof approvalPolicies)[number]

export const approvalOutcomes = ['allowed-once', 'rejected', 'cancelled', 'unavailable'] as const

/** How long an answer counts: for the call, for the session and its forks, or as a rule of the rules file. */
export const approvalScopes = ['once', 'session', 'rule'] as const
export type ApprovalScope = (typeof approvalScopes)[number]

interface AnyRule {
  readonly effect: 'allow' | 'ask' | 'deny'
  /** The sessions that work in it or below, links resolved; absent = all. */
  readonly folder?: string
}

/** Speaks of commands that begin with these words. */
export interface CommandRule extends AnyRule {
  readonly kind: 'command'
  readonly prefix: readonly string[]
  /** Of what is allowed: nothing may follow the words. */
  readonly exact?: true
  /** How far beyond its session's mode an allowed command may go; absent = not at all. */
  readonly access?: 'workspace-write' | 'network' | 'full-access'
}

/** Speaks of one file or, with `/` at the end, of all below a folder. */
export interface WriteRule extends AnyRule {
  readonly kind: 'write'
  readonly path: string
}

/** Speaks of a host, with its port where it is not the usual one; `*.` in front = all hosts below. */
export interface FetchRule extends AnyRule {
  readonly kind: 'fetch'
  readonly host: string
}

/** Speaks of a deed that nobody here can look into, by its name. */
export interface ForeignRule extends AnyRule {
  readonly kind: 'foreign'
  readonly what: string
}

/** What a person settled once and for all. Deny is stronger than ask, and ask than allow. */
export type PermissionRule = CommandRule | WriteRule | FetchRule | ForeignRule

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
      /** Of what was allowed; absent = once. */
      readonly scope?: ApprovalScope
      /** What else is allowed in that scope. */
      readonly rules?: readonly PermissionRule[]
      readonly reason?: string
    }
    /** From here on, in place of the configured one. */
    'approval/policy': { readonly policy: ApprovalPolicy; readonly source?: 'delegation' }
    /** What was allowed for the session so far counts no more. */
    'approval/forgotten': {}
  }
}

export type ApprovalEventType =
  | 'approval/asked'
  | 'approval/decided'
  | 'approval/policy'
  | 'approval/forgotten'

/** What each event holds; fields that a later version adds are tolerated. */
export const approvalEventSchemas = () => {
  const text = optional(string())
  const source = optional(literal('delegation'))
  const rule = looseObject({ effect: literal(['allow', 'ask', 'deny']), kind: string() })
  return {
    'approval/asked': object({ id: string(), toolName: string(), callId: text, digest: text, reason: text }),
    'approval/decided': object({
      id: string(),
      outcome: literal(approvalOutcomes),
      scope: optional(literal(approvalScopes)),
      rules: optional(array(rule)),
      reason: text,
    }),
    'approval/policy': object({ policy: literal(approvalPolicies), source }),
    'approval/forgotten': object({}),
  }
}
