import { crc32 } from 'node:zlib'

export const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const
export type ImageType = (typeof imageTypes)[number]

/** What the bytes of a picture say of it. */
export interface PictureFacts {
  readonly mediaType: ImageType
  /** Pixels, as stored: a turn that the file asks for is not made. */
  readonly width: number
  readonly height: number
}

/** What a picture's bytes are, or 'broken' where they begin like one and are none; undefined for anything else. */
export function readPicture(bytes: Uint8Array): PictureFacts | { readonly broken: ImageType } | undefined {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const mediaType = sniffImage(view)
  if (mediaType === undefined) return undefined
  const size = sizeReaders[mediaType](view)
  const isWhole = size !== undefined && size.width > 0 && size.height > 0
  return isWhole ? { mediaType, width: size.width, height: size.height } : { broken: mediaType }
}

/** By the first bytes alone. */
export function sniffImage(bytes: Uint8Array): ImageType | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 12)).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  if (head.startsWith('RIFF') && head.endsWith('WEBP')) return 'image/webp'
  return undefined
}

interface Size {
  readonly width: number
  readonly height: number
}

/** Undefined for what is broken or cut off, as far as that shows without decoding pixels. */
const sizeReaders: Record<ImageType, (bytes: Buffer) => Size | undefined> = {
  'image/png': pngSize,
  'image/jpeg': jpegSize,
  'image/webp': webpSize,
  'image/gif': gifSize,
}

/** Walks all chunks, checks that of the size, and asks for pixels and an end. */
function pngSize(bytes: Buffer): Size | undefined {
  let size: Size | undefined
  let hasPixels = false
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    const end = at + 12 + length
    if (end > bytes.length) return undefined
    if (at === 8) {
      const sum = crc32(bytes.subarray(at + 4, end - 4))
      if (type !== 'IHDR' || length !== 13 || sum !== bytes.readUInt32BE(end - 4)) return undefined
      size = { width: bytes.readUInt32BE(at + 8), height: bytes.readUInt32BE(at + 12) }
    }
    hasPixels ||= type === 'IDAT'
    if (type === 'IEND') return hasPixels ? size : undefined
    at = end
  }
  return undefined
}

/** Frames that begin with a size; the numbers between them mean other things. */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Walks the segments up to the pixels, and asks for an end behind them. */
function jpegSize(bytes: Buffer): Size | undefined {
  let size: Size | undefined
  for (let at = 2; at + 4 <= bytes.length;) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) {
      at++
      continue
    }
    const length = bytes.readUInt16BE(at + 2)
    if (length < 2 || at + 2 + length > bytes.length) return undefined
    if (marker === 0xda) return bytes.lastIndexOf('\xff\xd9', undefined, 'latin1') > at ? size : undefined
    if (isFrame(marker) && length >= 8) {
      size = { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    }
    at += 2 + length
  }
  return undefined
}

function gifSize(bytes: Buffer): Size | undefined {
  const trailer = 0x3b
  if (bytes.length < 14 || bytes.lastIndexOf(trailer) < 13) return undefined
  return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
}

/** The three kinds of first chunk: plain, lossless, and with extras. */
function webpSize(bytes: Buffer): Size | undefined {
  if (bytes.length < 30 || bytes.readUInt32LE(4) + 8 > bytes.length) return undefined
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      if (bytes.readUIntBE(23, 3) !== 0x9d012a) return undefined
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      if (bytes[20] !== 0x2f) return undefined
      const bits = bytes.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}
