import type { CallId } from '@dsh/protocol'
import type { EventTypeDefinition } from '../../core/session/index.ts'
import { isCount, isFields, isText } from '../../kernel/index.ts'

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

/** Notes of what ran beside the turns: a reader that does not know them loses nothing. */
export const taskEvents: readonly EventTypeDefinition[] = [
  { type: 'task/start', ignorable: true, validate: assertStart },
  { type: 'task/end', ignorable: true, validate: assertEnd },
]

function assertStart(data: unknown): void {
  if (!isFields(data)) throw new TypeError('data is no record')
  const { id, kind, label, callId } = data
  for (const [name, value] of Object.entries({ id, kind, label }))
    if (!isText(value)) throw new TypeError(`${name} is ${JSON.stringify(value)}`)
  if (callId !== undefined && !isText(callId)) throw new TypeError(`callId is ${JSON.stringify(callId)}`)
}

function assertEnd(data: unknown): void {
  if (!isFields(data)) throw new TypeError('data is no record')
  const { id, status, detail, output } = data
  if (!isText(id)) throw new TypeError(`id is ${JSON.stringify(id)}`)
  if (!taskEndings.some(each => each === status)) throw new TypeError(`status is ${JSON.stringify(status)}`)
  if (detail !== undefined && typeof detail !== 'string') throw new TypeError('detail is no text')
  if (output === undefined) return
  if (!isFields(output) || !isCount(output['bytes'])) throw new TypeError('output counts no bytes')
  const { artifact } = output
  if (artifact !== undefined && !isText(artifact)) throw new TypeError('output.artifact is no hash')
}
