import type { EventTypeDefinition } from '../../core/session/index.ts'
import { isCount, isFields, isText } from '../../kernel/index.ts'
import { taskEndings } from './events.ts'

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
