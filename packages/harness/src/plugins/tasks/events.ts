import type { CallId } from '@dsh/protocol'

/** `lost`: it ended with the program or the session that it ran in. */
export const taskEndings = ['completed', 'failed', 'killed', 'lost'] as const
export type TaskEnding = (typeof taskEndings)[number]

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    'task/start': {
      /** `<kind>-<n>`, never given twice in one session. */
      readonly id: string
      readonly kind: string
      readonly label: string
      /** The call that it came from. */
      readonly callId?: CallId
    }
    'task/end': {
      readonly id: string
      readonly status: TaskEnding
      /** In words, such as an exit code. */
      readonly detail?: string
      /** What it printed; `artifact` holds what was kept of that. */
      readonly output?: { readonly bytes: number; readonly artifact?: string }
    }
  }
}
