import { hash } from 'node:crypto'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { isChunkRow, unpackRow } from '../../../core/session/index.ts'
import type { ChunkRow } from '../../../core/session/index.ts'
import { isCount, isFields, parseJson } from '../../../kernel/index.ts'
import type { Fields } from '../../../kernel/index.ts'
import { toHeaderText } from '../../persistence/index.ts'
import { isSpillList } from './spill.ts'
import type { Spill } from './spill.ts'

/** The first line of each frame but the header's: where it belongs. */
export interface ChainLine {
  readonly firstSeq: number
  readonly count: number
  /** `chainHash` of the frame before. */
  readonly prev: string
}

/** What one line holds: an event, or a row of chunks, which has no `spill`. */
export interface EventLine {
  readonly events: readonly SessionEvent[]
  /** Texts that the event still lacks. */
  readonly spill?: readonly Spill[]
}

/** Hash that the next frame names: 16 bytes of SHA-256 over the compressed frame, as hex. */
export function chainHash(frame: Uint8Array): string {
  return hash('sha256', frame, 'hex').slice(0, 32)
}

/** Without `toolStart` it says nothing of what `tool/start` tells in the log. */
export function toHeaderLine(header: SessionHeader, { toolStart = true } = {}): string {
  return `${toolStart ? toHeaderText(header) : JSON.stringify({ type: 'session', ...header })}\n`
}

export function toChainLine(chain: ChainLine): string {
  return `${JSON.stringify(chain)}\n`
}

export function parseChainLine(line: string): ChainLine | undefined {
  const value = parseObject(line)
  if (value === undefined || !isCount(value['firstSeq']) || !isCount(value['count'])) return undefined
  return typeof value['prev'] === 'string' ? (value as unknown as ChainLine) : undefined
}

/** Whether the line may stand for more events than one. */
export function isRowLine(line: string): boolean {
  return rowLine.test(line)
}

const rowLine = /^\{"type":"[a-z-]+-chunks",/

/** What begins with `seq`, or in one sentence why the line is none. */
export function parseEventLine(line: string, seq: number): EventLine | string {
  const value = parseObject(line)
  if (value === undefined) return 'the line is not JSON'
  if (isChunkRow(value)) return parseRow(value, seq)
  if (value['seq'] !== seq) return `the line has seq ${JSON.stringify(value['seq'])}, expected ${seq}`
  if (typeof value['type'] !== 'string') return 'the line has no type'
  if (!('data' in value)) return 'the line has no data'
  if (!('spill' in value)) return { events: [value as unknown as SessionEvent] }
  const { spill, ...event } = value
  if (!isSpillList(spill)) return 'the line names its texts in a way that this version does not know'
  return { events: [event as unknown as SessionEvent], spill }
}

function parseRow(row: ChunkRow, seq: number): EventLine | string {
  const events = unpackRow(row)
  if (typeof events === 'string') return events
  const first = events[0]?.seq
  return first === seq ? { events } : `the line has seq ${JSON.stringify(first)}, expected ${seq}`
}

function parseObject(line: string): Fields | undefined {
  const value = parseJson(line)
  return isFields(value) ? value : undefined
}
