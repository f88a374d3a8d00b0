import { crc32, deflateSync } from 'node:zlib'

/** Sound pictures of any size without content worth seeing, for tests. */
export function png(width: number, height: number): Buffer {
  const size = Buffer.alloc(13)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  size.set([1, 0, 0, 0, 0], 8)
  const rows = deflateSync(Buffer.alloc(Math.max(1, (Math.ceil(width / 8) + 1) * height)))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', size),
    chunk('IDAT', rows),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Headers and an end around no pixels; nothing here decodes them. */
export function jpeg(width: number, height: number): Buffer {
  const frame = Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0])
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  const start = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 6, 1, 2, 3, 4, 0xff])
  return Buffer.concat([start, frame, Buffer.from([0xff, 0xda, 0, 2, 1, 2, 3, 0xff, 0xd9])])
}

export function gif(width: number, height: number): Buffer {
  const bytes = Buffer.concat([Buffer.from('GIF89a'), Buffer.alloc(7), Buffer.from([0x2c, 0, 0x3b])])
  bytes.writeUInt16LE(width, 6)
  bytes.writeUInt16LE(height, 8)
  return bytes
}

export function webp(width: number, height: number): Buffer {
  const frame = Buffer.from([0, 0, 0, 0x9d, 0x01, 0x2a, 0, 0, 0, 0, 0, 0])
  frame.writeUInt16LE(width, 6)
  frame.writeUInt16LE(height, 8)
  return riff('VP8 ', frame)
}

export function webpLossless(width: number, height: number): Buffer {
  const frame = Buffer.alloc(12)
  frame[0] = 0x2f
  frame.writeUInt32LE(((width - 1) | ((height - 1) << 14)) >>> 0, 1)
  return riff('VP8L', frame)
}

export function webpExtended(width: number, height: number): Buffer {
  const frame = Buffer.alloc(10)
  frame.writeUIntLE(width - 1, 4, 3)
  frame.writeUIntLE(height - 1, 7, 3)
  return riff('VP8X', frame)
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const ends = Buffer.alloc(8)
  ends.writeUInt32BE(data.length, 0)
  ends.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
}

function riff(type: string, frame: Buffer): Buffer {
  const head = Buffer.from('RIFF\0\0\0\0WEBP????\0\0\0\0')
  head.write(type, 12)
  head.writeUInt32LE(12 + frame.length, 4)
  head.writeUInt32LE(frame.length, 16)
  return Buffer.concat([head, frame])
}

export const pictures: readonly Buffer[] = [png, jpeg, gif, webp, webpLossless, webpExtended].map(make =>
  make(30, 20),
)
