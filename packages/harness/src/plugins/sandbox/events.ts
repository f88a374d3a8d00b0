import { literal, object, optional } from 'zod/mini'

/** What tools may do: look, change files of the workspace, or anything. */
export const sandboxModes = ['read-only', 'workspace-write', 'full-access'] as const
export type SandboxMode = (typeof sandboxModes)[number]

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** From here on, in place of the configured one. */
    'sandbox/mode': { readonly mode: SandboxMode; readonly source?: 'delegation' }
  }
}

/** Fields that a later version adds are tolerated. */
export const sandboxModeSchema = () =>
  object({ mode: literal(sandboxModes), source: optional(literal('delegation')) })
