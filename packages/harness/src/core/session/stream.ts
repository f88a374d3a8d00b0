import { CallId } from '@dsh/protocol'
import type { SessionEvent, StreamChunk } from '@dsh/protocol'
import { isDelta } from '../llm/index.ts'
import type { Delta } from '../llm/index.ts'

/** A stream with the deltas of each block as one, where its first was. */
export function mergeDeltas(chunks: Iterable<StreamChunk>): StreamChunk[] {
  const merged: StreamChunk[] = []
  const places = new Map<string, { readonly place: number; readonly deltas: Delta[] }>()
  for (const chunk of chunks) {
    if (!isDelta(chunk)) {
      merged.push(chunk)
      continue
    }
    const key = `${chunk.type} ${chunk.index}`
    const known = places.get(key)
    if (known === undefined) {
      places.set(key, { place: merged.length, deltas: [chunk] })
      merged.push(chunk)
    } else {
      known.deltas.push(chunk)
    }
  }
  for (const { place, deltas } of places.values()) merged[place] = joined(deltas)
  return merged
}

function joined(deltas: readonly Delta[]): StreamChunk {
  const [first] = deltas
  if (first === undefined || deltas.length === 1) return first as StreamChunk
  if (first.type !== 'tool-call-delta') {
    const text = deltas.map(delta => (delta.type === 'tool-call-delta' ? '' : delta.text)).join('')
    return Object.freeze({ type: first.type, index: first.index, text })
  }
  const calls = deltas.filter(delta => delta.type === 'tool-call-delta')
  const name = calls.find(call => call.name !== undefined && call.name !== '')?.name
  return Object.freeze({
    type: first.type,
    index: first.index,
    id: calls.find(call => call.id !== '')?.id ?? CallId(''),
    ...(name === undefined ? {} : { name }),
    argumentsDelta: calls.map(call => call.argumentsDelta).join(''),
  })
}

/**
 * The chunks of the attempt that ended with the finish chunk at `seq`: back to the last attempt, message or step.
 * `at` reads the log.
 */
export function attemptBefore(at: (seq: number) => SessionEvent | undefined, seq: number): StreamChunk[] {
  const chunks: StreamChunk[] = []
  for (let each = seq; each >= 0; each--) {
    const event = at(each)
    if (event === undefined || isBoundary(event)) break
    if (event.type !== 'assistant/chunk') continue
    if (each < seq && event.data.chunk.type === 'finish') break
    chunks.push(event.data.chunk)
  }
  return chunks.reverse()
}

/** Whether the chunks behind this event belong to another attempt than those before it. */
export function isBoundary(event: SessionEvent): boolean {
  return boundaries.has(event.type)
}

const boundaries: ReadonlySet<string> = new Set([
  'step/start',
  'step/end',
  'assistant/message',
  'request/header',
  'llm/retry',
  'llm/retry-started',
])
