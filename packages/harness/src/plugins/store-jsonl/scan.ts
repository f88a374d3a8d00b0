import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import type { SessionEvent } from '@dsh/protocol'
import type { StoredGap } from '../../core/session/index.ts'
import { decodeFrame, decodeTornFrame, frameAt, nextMagic, rawContent } from './frames.ts'
import { parseHeaderLine } from '../persistence/index.ts'
import type { HeaderLine } from '../persistence/index.ts'
import { chainHash, parseChainLine, parseEventLine } from './records.ts'
import type { ChainLine, EventLine } from './records.ts'
import type { Spill } from './spill.ts'

/** The end of a log that is no complete frame: what a crash in the middle of a write leaves. */
export interface TornTail {
  readonly start: number
  readonly bytes: number
  readonly reason: string
  /** How many of the log's last events stand in complete lines of this tail. */
  readonly kept: number
}

export interface ScannedLog extends HeaderLine {
  /** Contiguous up to the first gap; from `fromSeq` on. */
  readonly events: readonly SessionEvent[]
  /** How many events the log has up to the first gap, whatever `fromSeq` was. */
  readonly length: number
  /** Bytes of the complete frames that hold them. */
  readonly end: number
  /** `chainHash` of the last such frame. */
  readonly lastHash: string
  readonly tail?: TornTail
  readonly gaps: readonly StoredGap[]
  /** Texts that some of `events` still lack. */
  readonly spills: readonly MissingText[]
}

export interface MissingText {
  readonly event: SessionEvent
  readonly spill: Spill
}

export interface ScanOptions {
  /** Events before it are checked, but not parsed. */
  readonly fromSeq?: number
  readonly signal?: AbortSignal | undefined
}

interface Gap {
  readonly fromSeq: number
  toSeq: number
  readonly bytes: number
  readonly reason: string
  readonly events: SessionEvent[]
}

type ReadFrame =
  | {
      readonly end: number
      readonly hash: string
      readonly chain: ChainLine
      readonly lines: readonly string[]
    }
  /** A frame that holds nothing of ours. */
  | { readonly end: number; readonly chain?: undefined }
  | { readonly reason: string }

/** Longer stretches of work let other work in between. */
const longestStretchMs = 50

/** Reads the header frame alone; `bytes` may end behind it. Gives the reason where there is none. */
export function scanHeader(bytes: Buffer): (HeaderLine & { readonly end: number }) | string {
  if (bytes.length === 0) return 'the file is empty'
  const frame = frameAt(bytes, 0)
  if (frame.kind === 'torn') return 'the file ends inside its header'
  if (frame.kind !== 'data') return 'the file does not begin with a header frame'
  const text = decodeText(bytes.subarray(0, frame.end))
  if (text === undefined) return 'the header frame does not match its checksum'
  const [first = '', rest, ...others] = text.split('\n')
  if (rest !== '' || others.length > 0) return 'the first frame is not one line'
  const line = parseHeaderLine(first)
  return typeof line === 'string' ? line : { ...line, end: frame.end }
}

/**
 * Reads a whole log and never stops at damage: the events up to the first gap are the log, what can be read behind a
 * gap is given with it. Incomplete bytes at the end are no gap but a tail. Gives the reason where there is no header.
 */
export async function scanLog(bytes: Buffer, options: ScanOptions = {}): Promise<ScannedLog | string> {
  const header = scanHeader(bytes)
  if (typeof header === 'string') return header
  const scan = new Scan(bytes, header.end, options.fromSeq ?? 0)
  let pauseAt = performance.now() + longestStretchMs
  while (scan.step()) {
    options.signal?.throwIfAborted()
    if (performance.now() < pauseAt) continue
    await setImmediate()
    pauseAt = performance.now() + longestStretchMs
  }
  return { header: header.header, toolStart: header.toolStart, ...scan.result() }
}

class Scan {
  readonly #bytes: Buffer
  readonly #fromSeq: number
  readonly #events: SessionEvent[] = []
  readonly #gaps: Gap[] = []
  readonly #spills: MissingText[] = []
  #at: number
  #nextSeq = 0
  #hash: string | undefined
  /** State in front of the first gap. */
  #sound: { readonly end: number; readonly length: number; readonly lastHash: string }
  #tail: TornTail | undefined

  constructor(bytes: Buffer, start: number, fromSeq: number) {
    this.#bytes = bytes
    this.#fromSeq = fromSeq
    this.#at = start
    this.#hash = chainHash(bytes.subarray(0, start))
    this.#sound = { end: start, length: 0, lastHash: this.#hash }
  }

  /** Reads one frame; false at the end. */
  step(): boolean {
    if (this.#at >= this.#bytes.length) return false
    const frame = readFrame(this.#bytes, this.#at)
    if ('reason' in frame) return this.#skipDamage(frame.reason)
    if (frame.chain === undefined) {
      this.#at = frame.end
      return true
    }
    this.#checkChain(frame.chain)
    this.#take(frame.lines, frame.chain.firstSeq)
    this.#at = frame.end
    this.#hash = frame.hash
    this.#nextSeq = frame.chain.firstSeq + frame.lines.length
    if (this.#gaps.length === 0) this.#sound = { end: frame.end, length: this.#nextSeq, lastHash: frame.hash }
    return true
  }

  result(): Omit<ScannedLog, keyof HeaderLine> {
    const kept = this.#tail?.kept ?? 0
    return {
      ...this.#sound,
      length: this.#sound.length + kept,
      events: this.#events,
      gaps: this.#gaps,
      spills: this.#spills,
      ...(this.#tail === undefined ? {} : { tail: this.#tail }),
    }
  }

  #checkChain({ firstSeq, prev }: ChainLine): void {
    const expected = this.#nextSeq
    if (firstSeq < expected) {
      const reason = `seq ${expected} was expected, seq ${firstSeq} follows: two programs wrote this log`
      this.#openGap({ fromSeq: firstSeq, toSeq: expected - 1, bytes: 0, reason })
    } else if (firstSeq > expected) {
      const reason = `seq ${expected} was expected, seq ${firstSeq} follows`
      this.#openGap({ fromSeq: expected, toSeq: firstSeq - 1, bytes: 0, reason })
    } else if (this.#hash !== undefined && prev !== this.#hash) {
      const reason = `the frame at seq ${firstSeq} was written behind another frame than the one before it`
      this.#openGap({ fromSeq: firstSeq, toSeq: firstSeq - 1, bytes: 0, reason })
    }
  }

  #openGap(gap: Omit<Gap, 'events'>): void {
    this.#gaps.push({ ...gap, events: [] })
  }

  #take(lines: readonly string[], firstSeq: number): void {
    if (firstSeq + lines.length <= this.#fromSeq) return
    for (const [index, line] of lines.entries()) {
      const seq = firstSeq + index
      const parsed = parseEventLine(line, seq)
      if (typeof parsed === 'string') this.#skipLine(line, seq, parsed)
      else if (seq >= this.#fromSeq || this.#gaps.length > 0) this.#accept(parsed)
    }
  }

  #skipLine(line: string, seq: number, reason: string): void {
    if (this.#gaps.length === 0) this.#sound = { ...this.#sound, length: seq }
    this.#openGap({ fromSeq: seq, toSeq: seq, bytes: Buffer.byteLength(line), reason })
  }

  #accept({ event, spill }: EventLine): void {
    const list = this.#gaps.at(-1)?.events ?? this.#events
    list.push(event)
    for (const missing of spill ?? []) this.#spills.push({ event, spill: missing })
  }

  /** Goes on at the next sound frame. Where there is none, what is left is the tail. */
  #skipDamage(reason: string): boolean {
    const start = this.#at
    for (let at = nextMagic(this.#bytes, start + 1); at !== -1; at = nextMagic(this.#bytes, at + 1)) {
      const frame = readFrame(this.#bytes, at)
      if ('reason' in frame || frame.chain === undefined) continue
      const toSeq = frame.chain.firstSeq - 1
      this.#openGap({ fromSeq: this.#nextSeq, toSeq, bytes: at - start, reason })
      this.#at = at
      this.#nextSeq = frame.chain.firstSeq
      this.#hash = undefined
      return true
    }
    this.#endInTail(reason)
    return false
  }

  #endInTail(reason: string): void {
    const start = this.#at
    const bytes = this.#bytes.length - start
    const kept = this.#gaps.length === 0 ? this.#keepLines(start) : 0
    this.#tail = { start, bytes, reason, kept }
  }

  /** Accepts the complete lines of an incomplete frame; nothing of a frame that was overwritten. */
  #keepLines(start: number): number {
    const intact = this.#bytes.subarray(0, intactEnd(this.#bytes, start))
    const frame = frameAt(intact, start)
    if (frame.kind !== 'torn') return 0
    const decoded = decodeTornFrame(intact.subarray(start, frame.blocksEnd))
    const complete = decoded.subarray(0, decoded.lastIndexOf('\n') + 1)
    if (!isUtf8(complete)) return 0
    const { chain, lines } = splitFrame(complete.toString('utf8'))
    if (chain?.firstSeq !== this.#nextSeq || chain.prev !== this.#hash) return 0
    let kept = 0
    for (const line of lines.slice(0, chain.count)) {
      const parsed = parseEventLine(line, this.#nextSeq + kept)
      if (typeof parsed === 'string') break
      if (this.#nextSeq + kept >= this.#fromSeq) this.#accept(parsed)
      kept += 1
    }
    return kept
  }
}

function readFrame(bytes: Buffer, at: number): ReadFrame {
  const found = frameAt(bytes, at)
  if (found.kind === 'torn') return { reason: 'the last frame is incomplete' }
  if (found.kind === 'bad') return found
  if (found.kind === 'skippable') return { end: found.end }
  const frame = bytes.subarray(at, found.end)
  const hash = chainHash(frame)
  const text = isNamedNext(bytes, found.end, hash) ? rawText(frame) : decodeText(frame)
  if (text === undefined) return { reason: 'a frame does not match its checksum' }
  const { chain, lines } = splitFrame(text)
  if (chain === undefined) return { reason: 'a frame does not say where it belongs' }
  if (lines.length !== chain.count)
    return { reason: `a frame has ${lines.length} lines where ${chain.count} were written` }
  return { end: found.end, hash, chain, lines }
}

/**
 * Whether a short frame at `at` says that it follows the frame with this hash. Then that frame is whole, and its
 * checksum, which takes as long as all the rest of its reading, tells nothing more.
 */
function isNamedNext(bytes: Buffer, at: number, hash: string): boolean {
  const start = bytes.subarray(at, at + longestChainLine).toString('latin1')
  return start.includes(`"prev":"${hash}"`)
}

const longestChainLine = 128

function rawText(frame: Buffer): string | undefined {
  try {
    return (rawContent(frame) ?? decodeFrame(frame)).toString('utf8')
  } catch {
    return undefined
  }
}

function splitFrame(text: string): { chain: ChainLine | undefined; lines: readonly string[] } {
  const end = text.indexOf('\n')
  if (end === -1 || !text.endsWith('\n')) return { chain: undefined, lines: [] }
  const lines = end + 1 === text.length ? [] : text.slice(end + 1, -1).split('\n')
  return { chain: parseChainLine(text.slice(0, end)), lines }
}

function decodeText(frame: Buffer): string | undefined {
  try {
    return decodeFrame(frame).toString('utf8')
  } catch {
    return undefined
  }
}

/** No frame has that many zeros in a row, so they are a block that never reached the disk. */
const hole = Buffer.alloc(64)

function intactEnd(bytes: Buffer, start: number): number {
  const firstHole = bytes.indexOf(hole, start)
  let end = firstHole === -1 ? bytes.length : firstHole
  while (end > start && bytes[end - 1] === 0) end -= 1
  return end
}
