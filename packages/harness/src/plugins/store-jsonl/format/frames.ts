import { endianness } from 'node:os'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { xxh64Low } from './xxh64.ts'

/**
 * A log file is a row of independent Zstandard frames, each with a checksum. They are walked here and decoded one by
 * one, because Node 22 and 24 give the first frame of several and drop the rest without an error.
 */
interface Frame {
  readonly start: number
  readonly end: number
}

export type WalkStep =
  | ({ readonly kind: 'data' | 'skippable' } & Frame)
  /** The bytes end inside this frame; `blocksEnd` is behind its last complete block. */
  | { readonly kind: 'torn'; readonly start: number; readonly blocksEnd: number }
  | { readonly kind: 'bad'; readonly start: number; readonly reason: string }

const magic = 0xfd2fb528
const magicBytes = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])
export const descriptorAt = magicBytes.length
const maxBlockSize = 128 * 1024
const checksumSize = 4
const checksumFlag = 0b100
// Set by no encoder, and passed over by every decoder.
const strayFlag = 0b10000
const maxFrameText = 1 << 30
const longestPiece = 1024 * 1024
// The checksum of a raw frame is reckoned on little-endian words.
const longestRaw = endianness() === 'LE' ? 4096 : 0

// Frame headers with a checksum and a length of one or two bytes.
const shortRaw = 0b00100100
const longRaw = 0b01100100

const compression = {
  params: { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_compressionLevel]: 3 },
}
/** The result of most frames in one piece: many small ones leave holes between them when they are given back. */
function decompression(frame: Buffer): { readonly maxOutputLength: number; readonly chunkSize: number } {
  const chunkSize = Math.min(Math.max(4 * frame.length, constants.Z_DEFAULT_CHUNK), longestPiece)
  return { maxOutputLength: maxFrameText, chunkSize }
}

// The mildest flush: gives what the complete blocks hold instead of failing at the missing end.
const tornDecompression = { maxOutputLength: maxFrameText, finishFlush: constants.ZSTD_e_continue }

/** Makes one frame. A short text is stored as it is: that takes a sixth of the time, and as little to read again. */
export function encodeFrame(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8')
  return bytes.length > longestRaw ? zstdCompressSync(bytes, compression) : encodeRaw(bytes)
}

/** Throws where the checksum or anything else is wrong. */
export function decodeFrame(frame: Buffer): Buffer {
  const raw = rawContent(frame)
  if (raw === undefined) return zstdDecompressSync(frame, decompression(frame))
  if (xxh64Low(raw) !== frame.readUInt32LE(frame.length - checksumSize))
    throw new RangeError('a frame does not match its checksum')
  return raw
}

/** What a frame of one piece holds, whether or not it matches its checksum; undefined where it cannot be decoded. */
export function uncheckedContent(frame: Buffer): Buffer | undefined {
  try {
    const raw = rawContent(frame)
    if (raw !== undefined) return raw
    const bare = Buffer.from(frame.subarray(0, -checksumSize))
    bare.writeUInt8(bare.readUInt8(4) & ~checksumFlag, 4)
    return zstdDecompressSync(bare, decompression(bare))
  } catch {
    return undefined
  }
}

/** What the complete blocks of an incomplete frame hold; no checksum covers it. */
export function decodeTornFrame(bytes: Buffer): Buffer {
  try {
    return zstdDecompressSync(bytes, tornDecompression)
  } catch {
    return Buffer.alloc(0)
  }
}

/** A frame of one block that is stored as it is, with its length in the header and no window. */
function encodeRaw(bytes: Buffer): Buffer {
  const { length } = bytes
  const isShort = length < 256
  const start = magicBytes.length + (isShort ? 2 : 3)
  const frame = Buffer.allocUnsafe(start + 3 + length + checksumSize)
  magicBytes.copy(frame)
  frame.writeUInt8(isShort ? shortRaw : longRaw, 4)
  if (isShort) frame.writeUInt8(length, 5)
  else frame.writeUInt16LE(length - 256, 5)
  frame.writeUIntLE((length << 3) | 1, start, 3)
  bytes.copy(frame, start + 3)
  frame.writeUInt32LE(xxh64Low(bytes), start + 3 + length)
  return frame
}

/**
 * The content of a frame that is stored as it is, without a look at its checksum; undefined for any other frame.
 * Throws where its lengths disagree.
 */
export function rawContent(frame: Buffer): Buffer | undefined {
  const descriptor = frame.readUInt8(4)
  if (longestRaw === 0) return undefined
  if (descriptor !== shortRaw && descriptor !== longRaw) return undefined
  const start = magicBytes.length + (descriptor === shortRaw ? 2 : 3)
  const header = frame.readUIntLE(start, 3)
  const content = frame.subarray(start + 3, -checksumSize)
  if ((header & 0b111) !== 1 || header >> 3 !== content.length) return undefined
  const declared = descriptor === shortRaw ? frame.readUInt8(5) : frame.readUInt16LE(5) + 256
  if (declared !== content.length)
    throw new RangeError(`a frame of ${content.length} bytes declares ${declared}`)
  return content
}

/** Reads the structure of the frame at `start`, decoding nothing. */
export function frameAt(bytes: Buffer, start: number): WalkStep {
  const torn = { kind: 'torn', start, blocksEnd: start } as const
  if (bytes.length - start < 5)
    return startsLikeFrame(bytes, start) ? torn : bad(start, 'no frame starts here')
  const found = bytes.readUInt32LE(start)
  if ((found & 0xfffffff0) >>> 0 === 0x184d2a50) {
    if (bytes.length - start < 8) return torn
    const end = start + 8 + bytes.readUInt32LE(start + 4)
    return end > bytes.length ? torn : { kind: 'skippable', start, end }
  }
  if (found !== magic) return bad(start, 'no frame starts here')
  const descriptor = bytes.readUInt8(start + 4)
  if ((descriptor & 0b1000) !== 0) return bad(start, 'a reserved bit of the frame header is set')
  if ((descriptor & checksumFlag) === 0) return bad(start, 'the frame has no checksum')
  return walkBlocks(bytes, start, start + 5 + headerRest(descriptor))
}

/** The descriptor of a frame in which a bit flipped that no decoder looks at, put right; undefined where it is right. */
export function strayDescriptor(frame: Buffer): number | undefined {
  const descriptor = frame.readUInt8(descriptorAt)
  return (descriptor & strayFlag) === 0 ? undefined : descriptor & ~strayFlag
}

/** Where the next frame may begin, at or behind `from`; −1 where none can. */
export function nextMagic(bytes: Buffer, from: number): number {
  return bytes.indexOf(magicBytes, from)
}

function headerRest(descriptor: number): number {
  const single = (descriptor & 0b100000) !== 0
  const dictionary = [0, 1, 2, 4][descriptor & 0b11] ?? 0
  const contentSize = [single ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0
  return (single ? 0 : 1) + dictionary + contentSize
}

function walkBlocks(bytes: Buffer, start: number, firstBlock: number): WalkStep {
  let at = firstBlock
  for (;;) {
    const torn = { kind: 'torn', start, blocksEnd: Math.min(at, bytes.length) } as const
    if (at + 3 > bytes.length) return torn
    const header = bytes.readUIntLE(at, 3)
    const type = (header >> 1) & 0b11
    const size = header >> 3
    if (type === 3) return bad(start, 'a block has a reserved type')
    if (size > maxBlockSize) return bad(start, 'a block is larger than the format allows')
    const end = at + 3 + (type === 1 ? 1 : size)
    if (end > bytes.length) return torn
    at = end
    if ((header & 1) === 1) break
  }
  const end = at + checksumSize
  return end > bytes.length ? { kind: 'torn', start, blocksEnd: at } : { kind: 'data', start, end }
}

function startsLikeFrame(bytes: Buffer, start: number): boolean {
  const head = bytes.subarray(start, start + magicBytes.length)
  return head.equals(magicBytes.subarray(0, head.length))
}

function bad(start: number, reason: string): WalkStep {
  return { kind: 'bad', start, reason }
}
