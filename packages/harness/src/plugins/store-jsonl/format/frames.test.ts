import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { decodeFrame, decodeTornFrame, encodeFrame, frameAt } from './frames.ts'
import { xxh64Low } from './xxh64.ts'

const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

function walk(bytes: Buffer): readonly string[] {
  const texts: string[] = []
  for (let at = 0; at < bytes.length;) {
    const frame = frameAt(bytes, at)
    assert.ok(frame.kind === 'data' || frame.kind === 'skippable', JSON.stringify(frame))
    if (frame.kind === 'data') texts.push(decodeFrame(bytes.subarray(at, frame.end)).toString())
    at = frame.end
  }
  return texts
}

test('the checksum is the one that Zstandard puts behind a frame', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), bytes => {
      const frame = zstdCompressSync(bytes, checksummed)
      assert.equal(xxh64Low(bytes), frame.readUInt32LE(frame.length - 4))
    }),
  )
  const long = Buffer.alloc(70_001, 'abcdefg')
  const frame = zstdCompressSync(long, checksummed)
  assert.equal(xxh64Low(long), frame.readUInt32LE(frame.length - 4))
})

test('every frame of a row is found, short ones that are stored as they are and long ones', () => {
  const lengths = [1, 255, 256, 257, 4095, 4096, 4097, 70_000, 400_000]
  const texts = lengths.map(length => 'añ\n'.repeat(length).slice(0, length))
  assert.deepEqual(walk(Buffer.concat(texts.map(encodeFrame))), texts)
})

test('another decoder reads each frame', () => {
  for (const length of [1, 255, 256, 300, 4096, 5000]) {
    const text = 'x'.repeat(length)
    assert.equal(zstdDecompressSync(encodeFrame(text)).toString(), text)
  }
})

test('frames that another encoder made are read, and foreign ones between them are passed over', () => {
  const foreign = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
  const pledged = zstdCompressSync('two', { ...checksummed, pledgedSrcSize: 3 })
  const frames = [zstdCompressSync('one', checksummed), foreign, pledged, foreign, encodeFrame('three')]
  assert.deepEqual(walk(Buffer.concat(frames)), ['one', 'two', 'three'])
})

test('a frame that is cut anywhere is known to be cut', () => {
  for (const text of ['short', 'x'.repeat(5000), 'y'.repeat(300_000)]) {
    const frame = encodeFrame(text)
    for (let length = 1; length < frame.length; length += Math.ceil(frame.length / 500)) {
      assert.equal(frameAt(frame.subarray(0, length), 0).kind, 'torn', `cut at ${length}`)
    }
  }
})

test('what is no frame, or one without a checksum, is not taken for one', () => {
  const reasonAt = (bytes: Buffer): string => {
    const found = frameAt(bytes, 0)
    return found.kind === 'bad' ? found.reason : found.kind
  }
  assert.equal(reasonAt(Buffer.alloc(100)), 'no frame starts here')
  assert.equal(reasonAt(Buffer.from('{}')), 'no frame starts here')
  assert.equal(reasonAt(zstdCompressSync('text')), 'the frame has no checksum')
  const reserved = encodeFrame('text')
  reserved.writeUInt8(reserved.readUInt8(4) | 0b1000, 4)
  assert.equal(reasonAt(reserved), 'a reserved bit of the frame header is set')
})

test('any flipped bit of a frame is noticed', () => {
  for (const text of ['{"short":"line"}\n'.repeat(5), 'long line\n'.repeat(800)]) {
    const frame = encodeFrame(text)
    for (let bit = 0; bit < frame.length * 8; bit += 1) {
      const copy = Buffer.from(frame)
      copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      const found = frameAt(copy, 0)
      if (found.kind !== 'data' || found.end !== copy.length) continue
      assert.throws(() => {
        if (decodeFrame(copy).toString() === text) throw new Error('the same text: a bit that means nothing')
      }, `bit ${bit}`)
    }
  }
})

test('complete blocks of a cut frame are decoded, and an incomplete one gives nothing', () => {
  const lines = Array.from({ length: 40_000 }, (_, line) => `{"line":${line}}\n`).join('')
  const frame = zstdCompressSync(lines, checksummed)
  const text = decodeTornFrame(frame.subarray(0, -6)).toString()
  assert.ok(text.length >= 128 * 1024 && lines.startsWith(text))
  assert.equal(decodeTornFrame(encodeFrame(lines.slice(0, 9000)).subarray(0, 500)).length, 0)
})
