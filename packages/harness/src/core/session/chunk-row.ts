import type { CallId, SessionEvent, StreamChunk } from '@dsh/protocol'
import { isFields } from '../../kernel/index.ts'
import { isDelta } from '../llm/index.ts'
import type { Delta } from '../llm/index.ts'

/**
 * Consecutive deltas of one block as a store may keep them: one row with the text and the time of each. Where a delta
 * ends is data, so nothing is joined. The types have no slash, so they are none of events.
 */
export type ChunkRow = TextRow | CallRow

interface RowPlace {
  readonly turn: number
  readonly step: number
  readonly index: number
  /** For each but the first the time since the one before, in ms. */
  readonly dt: readonly number[]
}

interface TextRow {
  readonly type: 'text-chunks' | 'reasoning-chunks'
  readonly seq0: number
  readonly time0: number
  readonly data: RowPlace & { readonly texts: readonly string[] }
}

interface CallRow {
  readonly type: 'tool-call-chunks'
  readonly seq0: number
  readonly time0: number
  readonly data: RowPlace & { readonly id: CallId; readonly name?: string; readonly args: readonly string[] }
}

type ChunkEvent = SessionEvent<'assistant/chunk'>

/** Fewer are no smaller as a row. */
const fewestMembers = 3
const mostMembers = 1024
/** Text in UTF-16 units; a member with more stays an event. */
const longestText = 16 * 1024

const rowTypes = {
  'text-delta': 'text-chunks',
  'reasoning-delta': 'reasoning-chunks',
  'tool-call-delta': 'tool-call-chunks',
} as const

/** `events`, which continue each other, with each run of deltas as a row; `unpackRow` gives the very same ones again. */
export function packChunks(events: Iterable<SessionEvent>): readonly (SessionEvent | ChunkRow)[] {
  const packed: (SessionEvent | ChunkRow)[] = []
  let run: ChunkEvent[] = []
  let length = 0
  const close = (): void => {
    if (run.length < fewestMembers) packed.push(...run)
    else packed.push(toRow(run))
    run = []
    length = 0
  }
  for (const event of events) {
    const text = textIn(event)
    if (text === undefined) {
      close()
      packed.push(event)
      continue
    }
    const chunk = event as ChunkEvent
    const isFull = run.length === mostMembers || length + text.length > longestText
    if (isFull || !continues(chunk, run.at(-1))) close()
    run.push(chunk)
    length += text.length
  }
  close()
  return packed
}

export function isChunkRow(value: { readonly type?: unknown }): value is ChunkRow {
  const { type } = value
  return type === 'text-chunks' || type === 'reasoning-chunks' || type === 'tool-call-chunks'
}

/** The events of a row, which may be anything; in one sentence why it is none. */
export function unpackRow(row: ChunkRow): ChunkEvent[] | string {
  const { type, seq0, time0, data } = row
  if (!Number.isSafeInteger(seq0) || !Number.isSafeInteger(time0) || !isFields(data))
    return 'the row of chunks has no place'
  const strange =
    Object.keys(row).find(key => !rowKeys.has(key)) ?? Object.keys(data).find(key => !dataKeysOfRow.has(key))
  if (strange !== undefined)
    return `the row of chunks has a member "${strange}" that this version does not know`
  const { turn, step, index, dt } = data
  const texts: unknown = type === 'tool-call-chunks' ? data['args'] : data['texts']
  if (!Array.isArray(texts) || !Array.isArray(dt) || dt.length !== texts.length - 1)
    return 'the row of chunks has not one time for each text'
  const events: ChunkEvent[] = []
  let time = time0
  for (const [at, text] of texts.entries()) {
    const gap: unknown = at === 0 ? 0 : dt[at - 1]
    if (!Number.isSafeInteger(gap) || typeof text !== 'string') return 'the row of chunks has a bad member'
    time += gap as number
    const chunk = toDelta(row, index, text)
    events.push({ type: 'assistant/chunk', seq: seq0 + at, time, data: { turn, step, chunk } })
  }
  return events
}

const rowKeys: ReadonlySet<string> = new Set(['type', 'seq0', 'time0', 'data'])
const dataKeysOfRow: ReadonlySet<string> = new Set([
  'turn',
  'step',
  'index',
  'dt',
  'texts',
  'id',
  'name',
  'args',
])

function toDelta({ type, data }: ChunkRow, index: number, text: string): Delta {
  if (type !== 'tool-call-chunks')
    return { type: type === 'text-chunks' ? 'text-delta' : 'reasoning-delta', index, text }
  const { id, name } = data
  return name === undefined
    ? { type: 'tool-call-delta', index, id, argumentsDelta: text }
    : { type: 'tool-call-delta', index, id, name, argumentsDelta: text }
}

function toRow(run: readonly ChunkEvent[]): ChunkRow {
  const first = run[0] as ChunkEvent
  const { turn, step, chunk } = first.data
  const dt = run.slice(1).map((event, at) => event.time - (run[at] as ChunkEvent).time)
  const texts = run.map(({ data }) => textOf(data.chunk as Delta))
  const delta = chunk as Delta
  const { index } = delta
  const place = { seq0: first.seq, time0: first.time }
  if (delta.type !== 'tool-call-delta')
    return { type: rowTypes[delta.type], ...place, data: { turn, step, index, dt, texts } }
  const { id, name } = delta
  const call = name === undefined ? { id } : { id, name }
  return { type: 'tool-call-chunks', ...place, data: { turn, step, index, ...call, dt, args: texts } }
}

/** The text of an event that a row can give back key for key; undefined for any other. */
function textIn(event: SessionEvent): string | undefined {
  const delta = plainDelta(event)
  if (delta === undefined || !isInteger(event.seq) || !isInteger(event.time)) return undefined
  const text = textOf(delta)
  return text.length <= longestText ? text : undefined
}

/** The delta of an event that holds nothing else, each thing where it is expected; undefined for any other. */
export function plainDelta(event: SessionEvent): Delta | undefined {
  if (event.type !== 'assistant/chunk' || !hasKeys(event, envelopeKeys)) return undefined
  const { data } = event
  if (!isFields(data) || !hasKeys(data, dataKeys)) return undefined
  const { turn, step, chunk } = data as ChunkEvent['data']
  return isInteger(turn) && isInteger(step) && isPlain(chunk) ? chunk : undefined
}

function isPlain(chunk: StreamChunk): chunk is Delta {
  if (!isFields(chunk) || !isDelta(chunk) || !isInteger(chunk.index)) return false
  if (typeof textOf(chunk) !== 'string') return false
  if (chunk.type !== 'tool-call-delta') return hasKeys(chunk, textKeys)
  const { id, name } = chunk
  if (typeof id !== 'string') return false
  return name === undefined
    ? hasKeys(chunk, callKeys)
    : typeof name === 'string' && hasKeys(chunk, namedCallKeys)
}

const envelopeKeys = ['type', 'seq', 'time', 'data']
const dataKeys = ['turn', 'step', 'chunk']
const textKeys = ['type', 'index', 'text']
const callKeys = ['type', 'index', 'id', 'argumentsDelta']
const namedCallKeys = ['type', 'index', 'id', 'name', 'argumentsDelta']

/** Exactly these, in this order. */
function hasKeys(value: object, keys: readonly string[]): boolean {
  let at = 0
  for (const key in value) if (key !== keys[at++]) return false
  return at === keys.length
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value) && !Object.is(value, -0)
}

function textOf(delta: Delta): string {
  return delta.type === 'tool-call-delta' ? delta.argumentsDelta : delta.text
}

function continues(event: ChunkEvent, last: ChunkEvent | undefined): boolean {
  if (last === undefined) return false
  const { data } = event
  if (event.seq !== last.seq + 1 || data.turn !== last.data.turn || data.step !== last.data.step) return false
  if (!Number.isSafeInteger(event.time - last.time)) return false
  return isSameBlock(data.chunk as Delta, last.data.chunk as Delta)
}

/** Whether two deltas differ in their text alone. */
export function isSameBlock(a: Delta, b: Delta): boolean {
  if (a.type !== b.type || a.index !== b.index) return false
  if (a.type !== 'tool-call-delta' || b.type !== 'tool-call-delta') return true
  return a.id === b.id && a.name === b.name
}
