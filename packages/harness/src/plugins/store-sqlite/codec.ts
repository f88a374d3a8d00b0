import { hash } from 'node:crypto'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { JsonValue, SessionEvent } from '@dsh/protocol'
import { isFields, parseJson, toJsonText } from '../../kernel/index.ts'

/** An event as its row holds it. */
export interface EventRow {
  readonly seq: number
  readonly body: string | Uint8Array
  /** Covers this event, all before it and the header. */
  readonly chain: string
}

export type RowDamage = 'ROW_DAMAGED' | 'ROW_MISPLACED'

export type DecodedRow =
  | { readonly event: SessionEvent; readonly chain: string }
  /** `chains` are what the next event may continue. */
  | { readonly code: RowDamage; readonly reason: string; readonly chains: readonly string[] }

/** Shorter texts stay as they are: the rows of a log can be read and searched by SQL. */
const shortestCompressed = 4096
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }
const decompression = { maxOutputLength: 1 << 30 }

/** The chain before the first event. */
export function rootChain(header: string): string {
  return link('', header)
}

export function encodeEvent(event: SessionEvent, prev: string): EventRow {
  const text = toJsonText(event as unknown as JsonValue)
  return { seq: event.seq, body: compress(text), chain: link(prev, text) }
}

/** The event of a row, if it continues one of the chains `prevs`; with none, any is continued. */
export function decodeEvent({ seq, body, chain }: EventRow, prevs: readonly string[]): DecodedRow {
  const broken = (what: string, code: RowDamage = 'ROW_DAMAGED'): DecodedRow => ({
    code,
    reason: `the row of event ${seq} ${what}`,
    chains: [chain],
  })
  const text = decompress(body)
  if (text === undefined) return broken('cannot be decoded')
  const value = parseJson(text)
  if (!isFields(value)) return broken('is not JSON')
  if (value['seq'] !== seq) return broken(`holds event ${JSON.stringify(value['seq'])}`, 'ROW_MISPLACED')
  if (typeof value['type'] !== 'string' || !('data' in value)) return broken('holds no event')
  const links = prevs.map(prev => link(prev, text))
  if (links.length === 0 || links.includes(chain)) return { event: value as unknown as SessionEvent, chain }
  // Either of the two is damaged; the next event continues the other.
  const what = seq === 0 ? 'the header or the row of event 0' : `the row of event ${seq}`
  return { code: 'ROW_DAMAGED', reason: `${what} does not match its checksum`, chains: [chain, ...links] }
}

/** Bytes that a row takes. */
export function sizeOf(body: string | Uint8Array): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length
}

function link(prev: string, text: string): string {
  return hash('sha256', `${prev}${text}`, 'hex').slice(0, 32)
}

function compress(text: string): string | Uint8Array {
  if (text.length < shortestCompressed) return text
  const compressed = zstdCompressSync(text, compression)
  return compressed.length < Buffer.byteLength(text) ? compressed : text
}

function decompress(body: string | Uint8Array): string | undefined {
  if (typeof body === 'string') return body
  try {
    return zstdDecompressSync(body, decompression).toString('utf8')
  } catch {
    return undefined
  }
}
