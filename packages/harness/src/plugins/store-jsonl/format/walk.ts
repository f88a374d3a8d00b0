import { setImmediate } from 'node:timers/promises'
import { decodeFrame, frameAt, nextMagic, rawContent } from './frames.ts'
import { chainHash, isRowLine, parseChainLine } from './records.ts'
import type { ChainLine } from './records.ts'
import type { FileWindow } from '../files/window.ts'

/** A whole frame of events. Frames are counted from the header, which is 0; a damaged stretch counts as one. */
export interface FramePiece {
  readonly kind: 'frame'
  readonly index: number
  readonly start: number
  readonly end: number
  readonly hash: string
  readonly chain: ChainLine
  readonly lines: readonly string[]
}

/** Bytes that were once written whole, and are not what was written. */
export interface DamagePiece {
  readonly kind: 'damage'
  readonly index: number
  readonly start: number
  readonly end: number
  readonly reason: string
}

/** The end of a log that is no complete frame: what a crash in the middle of a write leaves. */
export interface TailPiece extends Omit<DamagePiece, 'kind'> {
  readonly kind: 'tail'
  /** Its first bytes; all where it is no longer than any write. */
  readonly bytes: Buffer
}

export type Piece = FramePiece | DamagePiece | TailPiece

type FoundFrame =
  | Pick<FramePiece, 'end' | 'hash' | 'chain' | 'lines'>
  /** A frame that holds nothing of ours. */
  | { readonly end: number; readonly chain?: undefined }
  /** `end` where the bytes are those that were written, but no part of a log. */
  | { readonly reason: string; readonly end?: number }

/** Longer stretches of work let other work in between. */
const longestStretchMs = 50
const usualFrameBytes = 4096
const longestChainLine = 128
const longestTail = 32 * 1024 * 1024

/** Every piece of a log file from `start` on, in the order of the file. Never stops at damage. */
export async function* walkLog(
  window: FileWindow,
  start: number,
  signal?: AbortSignal,
): AsyncGenerator<Piece> {
  let at = start
  let pauseAt = performance.now() + longestStretchMs
  for (let index = 1; at < window.size; index += 1) {
    const frame = await findFrame(window, at)
    if ('reason' in frame) {
      const piece = await skipDamage(window, { at, index, frame })
      yield piece
      at = piece.end
    } else {
      if (frame.chain !== undefined) yield { kind: 'frame', index, start: at, ...frame }
      at = frame.end
    }
    signal?.throwIfAborted()
    if (performance.now() < pauseAt) continue
    await setImmediate()
    pauseAt = performance.now() + longestStretchMs
  }
}

/** The frame that was found at `start` before. */
export async function frameAgain(window: FileWindow, mark: FrameMark): Promise<FramePiece | undefined> {
  const frame = await findFrame(window, mark.start)
  if ('reason' in frame || frame.chain === undefined || frame.hash !== mark.hash) return undefined
  return { kind: 'frame', index: mark.index, start: mark.start, ...frame }
}

/** What is remembered of a frame whose lines are not needed now. */
export type FrameMark = Omit<FramePiece, 'lines'>

async function findFrame(window: FileWindow, at: number): Promise<FoundFrame> {
  for (let least = usualFrameBytes; ;) {
    const given = window.from(at, least)
    const bytes = given instanceof Promise ? await given : given
    const isAll = at + bytes.length >= window.size
    const found = frameAt(bytes, 0)
    if (found.kind === 'torn') {
      if (isAll) return { reason: 'the last frame is incomplete' }
      least = bytes.length * 2
    } else if (found.kind === 'bad') {
      return { reason: found.reason }
    } else if (found.kind === 'skippable') {
      return { end: at + found.end }
    } else if (isAll || bytes.length >= found.end + longestChainLine) {
      return readFrame(bytes, found.end, at)
    } else {
      least = found.end + longestChainLine
    }
  }
}

function readFrame(bytes: Buffer, length: number, at: number): FoundFrame {
  const frame = bytes.subarray(0, length)
  const hash = chainHash(frame)
  const text = isNamedNext(bytes, length, hash) ? rawText(frame) : decodeText(frame)
  if (text === undefined) return { reason: 'a frame does not match its checksum' }
  const end = at + length
  const { chain, lines } = splitFrame(text)
  if (chain === undefined) return { end, reason: 'a frame does not say where it belongs' }
  if (lines.length !== chain.count && (lines.length > chain.count || !lines.some(isRowLine)))
    return { end, reason: `a frame has ${lines.length} lines where ${chain.count} were written` }
  return { end, hash, chain, lines }
}

/**
 * Whether a short frame at `at` says that it follows the frame with this hash. Then that frame is whole, and its
 * checksum, which takes as long as all the rest of its reading, tells nothing more.
 */
function isNamedNext(bytes: Buffer, at: number, hash: string): boolean {
  const start = bytes.subarray(at, at + longestChainLine).toString('latin1')
  return start.includes(`"prev":"${hash}"`)
}

function rawText(frame: Buffer): string | undefined {
  try {
    return (rawContent(frame) ?? decodeFrame(frame)).toString('utf8')
  } catch {
    return undefined
  }
}

/** The text of a frame, where it matches its checksum. */
export function decodeText(frame: Buffer): string | undefined {
  try {
    return decodeFrame(frame).toString('utf8')
  } catch {
    return undefined
  }
}

export function splitFrame(text: string): {
  readonly chain: ChainLine | undefined
  readonly lines: readonly string[]
} {
  const end = text.indexOf('\n')
  if (end === -1 || !text.endsWith('\n')) return { chain: undefined, lines: [] }
  const lines = end + 1 === text.length ? [] : text.slice(end + 1, -1).split('\n')
  return { chain: parseChainLine(text.slice(0, end)), lines }
}

interface BadPlace {
  readonly at: number
  readonly index: number
  readonly frame: Extract<FoundFrame, { reason: string }>
}

/** Goes on at the next sound frame. Where there is none, what is left is the tail of an unfinished write. */
async function skipDamage(
  window: FileWindow,
  { at, index, frame }: BadPlace,
): Promise<DamagePiece | TailPiece> {
  const { reason } = frame
  const end = frame.end ?? (await nextSound(window, at + 1))
  if (end !== undefined) return { kind: 'damage', index, start: at, end, reason }
  const found = await window.from(at, longestTail)
  const bytes = Buffer.from(found.subarray(0, longestTail))
  return { kind: 'tail', index, start: at, end: window.size, reason, bytes }
}

async function nextSound(window: FileWindow, start: number): Promise<number | undefined> {
  for (let from = start; from < window.size;) {
    const bytes = await window.from(from, usualFrameBytes)
    const found = nextMagic(bytes, 0)
    if (found === -1) {
      // A beginning of the four bytes may stand at the end of the piece.
      from += Math.max(1, bytes.length - 3)
      continue
    }
    const frame = await findFrame(window, from + found)
    if (!('reason' in frame) && frame.chain !== undefined) return from + found
    from += found + 1
  }
  return undefined
}
