import { hash } from 'node:crypto'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { isCount, isFields, parseJson } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import { toHeaderText } from '../persistence/index.ts'
import { isSpillList } from './spill.ts'
import type { Spill } from './spill.ts'

/** The first line of each frame but the header's: where it belongs. */
export interface ChainLine {
  readonly firstSeq: number
  readonly count: number
  /** `chainHash` of the frame before. */
  readonly prev: string
}

export interface EventLine {
  readonly event: SessionEvent
  /** Texts that `event` still lacks. */
  readonly spill?: readonly Spill[]
}

/** Hash that the next frame names: 16 bytes of SHA-256 over the compressed frame, as hex. */
export function chainHash(frame: Uint8Array): string {
  return hash('sha256', frame, 'hex').slice(0, 32)
}

export function toHeaderLine(header: SessionHeader): string {
  return `${toHeaderText(header)}\n`
}

export function toChainLine(chain: ChainLine): string {
  return `${JSON.stringify(chain)}\n`
}

export function parseChainLine(line: string): ChainLine | undefined {
  const value = parseObject(line)
  if (value === undefined || !isCount(value['firstSeq']) || !isCount(value['count'])) return undefined
  return typeof value['prev'] === 'string' ? (value as unknown as ChainLine) : undefined
}

/** The event with `seq`, or in one sentence why the line is none. */
export function parseEventLine(line: string, seq: number): EventLine | string {
  const value = parseObject(line)
  if (value === undefined) return 'the line is not JSON'
  if (value['seq'] !== seq) return `the line has seq ${JSON.stringify(value['seq'])}, expected ${seq}`
  if (typeof value['type'] !== 'string') return 'the line has no type'
  if (!('data' in value)) return 'the line has no data'
  if (!('spill' in value)) return { event: value as unknown as SessionEvent }
  const { spill, ...event } = value
  if (!isSpillList(spill)) return 'the line names its texts in a way that this version does not know'
  return { event: event as unknown as SessionEvent, spill }
}

function parseObject(line: string): Fields | undefined {
  const value = parseJson(line)
  return isFields(value) ? value : undefined
}
