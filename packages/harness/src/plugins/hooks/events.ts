import { literal, nonnegative, number, object, optional, string } from 'zod/mini'

/** Programs whose hook files are understood. */
export const hookDialects = ['claude', 'codex'] as const
export type HookDialectName = (typeof hookDialects)[number]

/** The moments that hooks run at, as their files name them. */
export const hookPoints = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'Stop',
  'Notification',
  'SessionEnd',
] as const
export type HookPoint = (typeof hookPoints)[number]

/** Where a hook that fails may have been the one that says no. */
export const guardedPoints: ReadonlySet<HookPoint> = new Set(['PreToolUse', 'UserPromptSubmit'])

/** What came of a hook: `failed` decided nothing, and a failure that counts as a denial is `deny`. */
export const hookDecisions = ['none', 'allow', 'ask', 'deny', 'stop', 'failed', 'cancelled'] as const
export type HookDecision = (typeof hookDecisions)[number]

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** A hook of a turn is about to run. */
    'hook/invoked': {
      /** The same in its `hook/result`, and in no other. */
      readonly id: string
      readonly turn: number
      readonly point: HookPoint
      readonly dialect: HookDialectName
      /** Its file, and its place there. */
      readonly handlerId: string
      readonly matcher?: string
    }
    /** Exactly one for each that was invoked, but for a crash. */
    'hook/result': {
      readonly id: string
      readonly turn: number
      readonly point: HookPoint
      readonly handlerId: string
      readonly decision: HookDecision
      /** Absent where it was ended or never ran. */
      readonly exitCode?: number
      readonly stderrSummary?: string
      /** Why what it gave does not count. */
      readonly problem?: string
      readonly durationMs: number
    }
  }
}

/** Fields that a later version adds are tolerated. */
export const hookEventSchemas = () => {
  const common = { id: string(), turn: number(), point: literal(hookPoints), handlerId: string() }
  const text = optional(string())
  return {
    'hook/invoked': object({ ...common, dialect: literal(hookDialects), matcher: text }),
    'hook/result': object({
      ...common,
      decision: literal(hookDecisions),
      exitCode: optional(number()),
      stderrSummary: text,
      problem: text,
      durationMs: number().check(nonnegative()),
    }),
  }
}
