import { setImmediate } from 'node:timers/promises'
import { nextSeqOf } from '../read/chain.ts'
import type { ReadableFile } from '../files/file-system.ts'
import { descriptorAt, frameAt, strayDescriptor } from '../format/frames.ts'
import { chainHash } from '../format/records.ts'
import { hasHole } from '../format/tail.ts'
import { scanHeader } from '../read/scan.ts'
import { decodeText, splitFrame, walkLog } from '../format/walk.ts'
import { FileWindow } from '../files/window.ts'

/** The byte that once stood at `offset`. */
export interface Patch {
  readonly offset: number
  readonly value: number
}

/** What is wrong where the last frame has one. */
export const flippedText = 'a bit of the last frame is not the one that was written'

/** Each bit of a frame is tried, and each try reads all of it: some seconds for so many bytes; 30 ms where it is cut off. */
export const longestTried = 8 * 1024
const triesAtOnce = 1024

/**
 * Finds single bits that flipped. That a frame is again what was written is certain: the frame behind it names its hash.
 * Only the last frame has no more than its checksum and its place in the log to show for it.
 */
export async function findFlippedBits(file: ReadableFile, size: number): Promise<readonly Patch[]> {
  const window = new FileWindow(file, size)
  const patches: Patch[] = []
  const bytes = await window.from(0, longestTried)
  const header = scanHeader(bytes)
  let start = typeof header === 'string' ? 0 : header.end
  let last = { hash: chainHash(bytes.subarray(0, start)), next: 0 }
  const tryUntil = async (end: number, isRight: (bytes: Buffer) => boolean): Promise<void> => {
    if (end === start || end - start > longestTried) return
    const stretch = await window.from(start, end - start)
    const own = Buffer.from(stretch.subarray(0, end - start))
    const at = isRight(own) ? undefined : await flipUntil(own, isRight)
    if (at !== undefined) patches.push({ offset: start + at, value: own.readUInt8(at) })
  }
  for await (const piece of walkLog(window, start)) {
    if (piece.kind === 'damage') continue
    if (piece.kind === 'tail') {
      await tryUntil(piece.end, own => isNext(own, last))
      continue
    }
    await tryUntil(piece.start, own => chainHash(own) === piece.chain.prev)
    // Nothing in a frame tells of this one.
    const value = strayDescriptor(await window.from(piece.start, descriptorAt + 1))
    if (value !== undefined) patches.push({ offset: piece.start + descriptorAt, value })
    start = piece.end
    last = { hash: piece.hash, next: nextSeqOf(piece) }
  }
  return patches
}

/**
 * Whether the end of a log is the frame that follows `last` but for one bit: then nothing was broken off, and the frame
 * may have been acknowledged. Zeros at its very end are what a crash leaves, whatever they would be with a bit more.
 */
export async function isFlippedFrame(tail: Buffer, last: FrameEnd): Promise<boolean> {
  if (tail.length > longestTried || hasHole(tail)) return false
  const at = await flipUntil(Buffer.from(tail), own => isNext(own, last))
  return at !== undefined && tail.subarray(at).some(byte => byte !== 0)
}

/** What the next frame must name. */
interface FrameEnd {
  readonly hash: string
  readonly next: number
}

/** Leaves the bit flipped that makes the bytes right, and gives the index of its byte. */
async function flipUntil(bytes: Buffer, isRight: (bytes: Buffer) => boolean): Promise<number | undefined> {
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const at = bit >> 3
    const mask = 1 << (bit & 7)
    bytes.writeUInt8(bytes.readUInt8(at) ^ mask, at)
    if (isRight(bytes)) return at
    bytes.writeUInt8(bytes.readUInt8(at) ^ mask, at)
    if (bit % triesAtOnce === 0) await setImmediate()
  }
  return undefined
}

/** Whether the bytes are exactly the frame that follows `last`. */
function isNext(bytes: Buffer, last: FrameEnd): boolean {
  const frame = frameAt(bytes, 0)
  if (frame.kind !== 'data' || frame.end !== bytes.length) return false
  const { chain } = splitFrame(decodeText(bytes) ?? '')
  return chain?.prev === last.hash && chain.firstSeq === last.next
}

/** The file as it is read with the bits put right; nothing is written. */
export function patchedFile(file: ReadableFile, patches: readonly Patch[]): ReadableFile {
  return {
    stat: () => file.stat(),
    async read(position, length) {
      const bytes = Buffer.from(await file.read(position, length))
      for (const { offset, value } of patches)
        if (offset >= position && offset < position + bytes.length) bytes.writeUInt8(value, offset - position)
      return bytes
    },
  }
}
