import type { SessionEvent } from '@dsh/protocol'
import type { StoredGap } from '../../../core/session/index.ts'
import { gather, parseHeaderLine } from '../../persistence/index.ts'
import type { HeaderLine } from '../../persistence/index.ts'
import { mapLog, nextSeqOf, traceChain } from './chain.ts'
import type { ReadableFile } from '../files/file-system.ts'
import { frameAt } from '../format/frames.ts'
import { looseGaps, misplacedGaps } from './gaps.ts'
import type { LogBatch, LogGap } from './gaps.ts'
import { chainHash, parseEventLine } from '../format/records.ts'
import type { EventLine } from '../format/records.ts'
import { resolveTexts } from './resolve.ts'
import type { GetText, MissingText } from './resolve.ts'
import { eventsOfChanged, linesOfTail } from '../format/tail.ts'
import { decodeText, frameAgain, walkLog } from '../format/walk.ts'
import type { FrameMark, FramePiece, TailPiece } from '../format/walk.ts'
import { FileWindow } from '../files/window.ts'

/** The end of a log that is no complete frame. */
export interface TornTail {
  readonly start: number
  readonly bytes: number
  readonly reason: string
  /** How many of the log's last events stand in complete lines of this tail. */
  readonly kept: number
  /** How many events were in it, where nothing of it is missing: then it was changed, not cut off by a crash. */
  readonly changed?: number
}

/** Where a sound log ends. */
export interface LogEnd {
  /** How many events the log has up to the first gap, whatever `fromSeq` was. */
  readonly length: number
  /** Bytes of the complete frames that hold them. */
  readonly end: number
  /** `chainHash` of the last such frame. */
  readonly lastHash: string
  readonly tail?: TornTail
}

export interface ScannedLog extends HeaderLine, LogEnd {
  /** Contiguous up to the first gap; from `fromSeq` on. */
  readonly events: readonly SessionEvent[]
  readonly gaps: readonly StoredGap[]
}

export interface ScanOptions {
  /** Texts that stand beside the log, by their hash. */
  readonly getText: GetText
  /** Events before it are checked, but not parsed. */
  readonly fromSeq?: number | undefined
  /** A frame that was the log's before: what stands in front of it is passed over. */
  readonly begin?: FrameMark | undefined
  readonly signal?: AbortSignal | undefined
}

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

const longestHeader = 256 * 1024

/** Reads a whole log. Gives the reason where there is no header. */
export async function scanLog(file: ReadableFile, options: ScanOptions): Promise<ScannedLog | string> {
  const scan = await LogScan.open(file, options)
  if (typeof scan === 'string') return scan
  const { events, gaps } = await gather(scan.batches())
  const { header, toolStart } = scan
  return { header, toolStart, ...scan.end(), events, gaps }
}

/** More text than this is given in several batches. */
const longestBatch = 256 * 1024

/**
 * Reads a log in bounded memory and never stops at damage: what comes before the first gap is the log, what can be read
 * behind it follows. Incomplete bytes at the end are no gap but a tail.
 */
export class LogScan {
  readonly header: HeaderLine['header']
  readonly toolStart: boolean
  readonly window: FileWindow
  /** Where the first frame of events begins. */
  readonly start: number
  readonly headerHash: string
  readonly #options: ScanOptions
  #hash: string
  #nextSeq = 0
  /** State in front of the first gap. */
  #sound: { readonly end: number; readonly length: number; readonly lastHash: string }
  #isBroken = false
  #tail: TornTail | undefined
  #last: FramePiece | undefined
  /** It did not begin at the header and came to damage: what goes on behind that only the whole log can tell. */
  isLost = false
  #frames = 1
  readonly #frameStarts: number[] = []
  #ready: (LogBatch & { readonly spills: MissingText[] })[] = []
  #size = 0

  /** `file` stays the caller's, who closes it. */
  static async open(file: ReadableFile, options: ScanOptions): Promise<LogScan | string> {
    const window = new FileWindow(file, (await file.stat()).size)
    const bytes = await window.from(0, longestHeader)
    const header = scanHeader(bytes)
    if (typeof header === 'string') return header
    return new LogScan(window, { header, hash: chainHash(bytes.subarray(0, header.end)), options })
  }

  private constructor(
    window: FileWindow,
    found: {
      readonly header: HeaderLine & { readonly end: number }
      readonly hash: string
      readonly options: ScanOptions
    },
  ) {
    const { header, hash, options } = found
    this.header = header.header
    this.toolStart = header.toolStart
    this.window = window
    this.start = header.end
    this.headerHash = hash
    this.#options = options
    this.#hash = hash
    this.#sound = { end: header.end, length: 0, lastHash: hash }
    this.#renew()
    const { begin } = options
    if (begin === undefined) return
    this.start = begin.start
    this.#hash = begin.chain.prev
    this.#nextSeq = begin.chain.firstSeq
  }

  /** Once. A batch's events are the caller's. */
  async *batches(): AsyncGenerator<LogBatch> {
    const { signal } = this.#options
    let isWhole = true
    for await (const piece of walkLog(this.window, this.start, signal)) {
      if (piece.kind === 'tail') this.#endIn(piece)
      else if (piece.kind === 'frame' && this.#isNext(piece)) this.#take(piece)
      else isWhole = false
      if (!isWhole) break
      yield* this.#drain()
    }
    if (!isWhole && this.#options.begin !== undefined) this.isLost = true
    else if (!isWhole) yield* this.#rest(signal)
    this.#renew()
    yield* this.#drain()
  }

  /** The last whole frame of the sound log that was read so far. */
  get last(): FrameMark | undefined {
    return this.#last
  }

  /** The same of these frames alone, which continue each other from the header on. */
  async *batchesOf(frames: readonly FrameMark[]): AsyncGenerator<LogBatch> {
    for (const mark of frames) {
      await this.#takeAgain(mark, this.#options.signal)
      yield* this.#drain()
    }
    this.#renew()
    yield* this.#drain()
  }

  /** Behind the last batch. */
  end(): LogEnd {
    const tail = this.#tail
    return {
      ...this.#sound,
      length: this.#sound.length + (tail?.kept ?? 0),
      ...(tail === undefined ? {} : { tail }),
    }
  }

  /** Whole frames that were read so far, that of the header among them. */
  get frames(): number {
    return this.#frames
  }

  /** The first seq of each whole frame of events that was read in front of any gap. */
  get frameStarts(): readonly number[] {
    return this.#frameStarts
  }

  /** The log goes on with what continues it, wherever that stands; then comes what does not. */
  async *#rest(signal: AbortSignal | undefined): AsyncGenerator<LogBatch> {
    const marks = await mapLog(this.window, this.start, signal)
    const { main } = traceChain(marks, this.headerHash)
    for (const mark of main.slice(this.#frames - 1)) {
      await this.#takeAgain(mark, signal)
      yield* this.#drain()
    }
    for (const gap of misplacedGaps(main)) this.#openGap(gap)
    for (const { gap, mark } of looseGaps(marks, main)) {
      if (gap !== undefined) this.#openGap(gap)
      if (mark !== undefined) await this.#takeAgain(mark, signal)
      yield* this.#drain()
    }
    const last = marks.at(-1)
    if (last?.kind === 'tail') this.#endIn(last)
  }

  async #takeAgain(mark: FrameMark, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    const frame = await frameAgain(this.window, mark)
    if (frame !== undefined) this.#take(frame)
  }

  #isNext({ chain }: FramePiece): boolean {
    return chain.firstSeq === this.#nextSeq && chain.prev === this.#hash
  }

  #take(frame: FramePiece): void {
    this.#frames += 1
    this.#hash = frame.hash
    const next = nextSeqOf(frame)
    if (next > (this.#options.fromSeq ?? 0)) this.#parse(frame)
    this.#nextSeq = next
    if (this.#isBroken) return
    this.#sound = { end: frame.end, length: next, lastHash: frame.hash }
    this.#last = frame
    this.#frameStarts.push(frame.chain.firstSeq)
  }

  #parse(frame: FramePiece): void {
    let seq = frame.chain.firstSeq
    for (const line of frame.lines) {
      const parsed = parseEventLine(line, seq)
      if (typeof parsed === 'string') {
        const bytes = Buffer.byteLength(line)
        this.#openLineGap(frame, { fromSeq: seq, toSeq: seq, bytes, reason: parsed })
        seq += 1
      } else {
        this.#accept(parsed, { line, frame })
        seq += parsed.events.length
      }
    }
    const next = nextSeqOf(frame)
    if (seq === next) return
    const reason = `the frame has events up to seq ${seq - 1} where seq ${next - 1} is the last`
    this.#openLineGap(frame, { fromSeq: seq, toSeq: next - 1, bytes: 0, reason })
  }

  #openLineGap({ index, start }: FramePiece, gap: Omit<LogGap, 'code' | 'frame' | 'offset'>): void {
    if (!this.#isBroken) this.#sound = { ...this.#sound, length: gap.fromSeq }
    this.#openGap({ code: 'LINE_DAMAGED', frame: index, offset: start, ...gap })
  }

  #openGap(gap: LogGap): void {
    this.#isBroken = true
    this.#renew(gap)
  }

  #accept(
    { events, spill = [] }: EventLine,
    {
      line,
      frame,
    }: { readonly line: string; readonly frame: { readonly index: number; readonly start: number } },
  ): void {
    const batch = this.#ready.at(-1)
    const fromSeq = this.#isBroken ? 0 : (this.#options.fromSeq ?? 0)
    this.#size += line.length
    for (const event of events) {
      if (event.seq < fromSeq) continue
      batch?.events.push(event)
      for (const missing of spill) {
        batch?.spills.push({ event, spill: missing, frame: frame.index, offset: frame.start })
        this.#size += missing.bytes
      }
    }
  }

  /** Ends the batch that is being filled. */
  #renew(gap?: LogGap): void {
    this.#size = 0
    this.#ready.push({ ...(gap === undefined ? {} : { gap }), events: [], spills: [] })
  }

  async *#drain(): AsyncGenerator<LogBatch> {
    if (this.#size > longestBatch) this.#renew()
    const ready = this.#ready
    if (ready.length < 2) return
    this.#ready = ready.splice(-1)
    for (const { gap, events, spills } of ready) {
      const batch = { ...(gap === undefined ? {} : { gap }), events }
      for (const part of spills.length === 0
        ? [batch]
        : await resolveTexts(batch, spills, this.#options.getText)) {
        if (part.gap !== undefined) this.#isBroken = true
        if (part.gap !== undefined || part.events.length > 0) yield part
      }
    }
  }

  #endIn(piece: TailPiece): void {
    const { start, end, reason, bytes } = piece
    const kept = this.#isBroken ? 0 : this.#keepLines(piece)
    const changed = end - start > bytes.length ? undefined : eventsOfChanged(bytes)
    const tail = { start, bytes: end - start, reason, kept }
    this.#tail = changed === undefined ? tail : { ...tail, changed }
  }

  #keepLines(frame: TailPiece): number {
    const { chain, lines } = linesOfTail(frame.bytes)
    if (chain?.firstSeq !== this.#nextSeq || chain.prev !== this.#hash) return 0
    let kept = 0
    for (const line of lines) {
      const parsed = parseEventLine(line, this.#nextSeq + kept)
      if (typeof parsed === 'string' || kept + parsed.events.length > chain.count) break
      this.#accept(parsed, { line, frame })
      kept += parsed.events.length
    }
    return kept
  }
}
