import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { OutputCapture } from './capture.ts'

function capture(
  headBytes: number,
  tailBytes: number,
  pieces: readonly (string | Uint8Array)[],
): OutputCapture {
  const kept = new OutputCapture({ headBytes, tailBytes })
  for (const piece of pieces) kept.push(Buffer.from(piece))
  return kept
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

function ends(kept: OutputCapture) {
  const { head, tail, omittedBytes } = kept.ends()
  return [text(head), text(tail), omittedBytes]
}

test('both ends are kept to the byte, and what is between them is counted', () => {
  assert.deepEqual(ends(capture(3, 4, ['ab', 'cdefg'])), ['abc', 'defg', 0])
  assert.deepEqual(ends(capture(3, 4, ['ab', 'cdefgh'])), ['abc', 'efgh', 1])
  assert.deepEqual(ends(capture(0, 2, ['abc'])), ['', 'bc', 1])
  assert.deepEqual(ends(capture(2, 0, ['abc'])), ['ab', '', 1])
  assert.deepEqual(ends(capture(3, 4, [])), ['', '', 0])
})

test('the ends are the same whatever pieces the bytes come in', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 30 })
  fc.assert(
    fc.property(pieces, fc.nat(12), fc.nat(12), (parts, headBytes, tailBytes) => {
      const all = Buffer.concat(parts)
      const kept = capture(headBytes, tailBytes, parts)
      const { head, tail, omittedBytes } = kept.ends()
      const behind = all.subarray(headBytes)
      assert.deepEqual(Buffer.from(head), all.subarray(0, headBytes))
      assert.deepEqual(Buffer.from(tail), behind.subarray(Math.max(0, behind.length - tailBytes)))
      assert.equal(omittedBytes, Math.max(0, behind.length - tailBytes))
      assert.equal(kept.totalBytes, all.length)
    }),
  )
})

test('a long run keeps the last bytes when the ring has gone round many times', () => {
  const kept = new OutputCapture({ headBytes: 4, tailBytes: 10_000 })
  for (let index = 0; index < 50_000; index++) kept.push(Buffer.from(`${index}\n`))
  const last = Array.from({ length: 5000 }, (_, index) => `${index + 45_000}\n`).join('')
  assert.ok(last.endsWith(text(kept.ends().tail)) && kept.ends().tail.length === 10_000)
})

test('text is read by offset, by as many readers as like, and never inside a character', () => {
  const kept = new OutputCapture({ headBytes: 100, tailBytes: 10 })
  const bytes = Buffer.from('溝🐳é')
  let seen = ''
  let offset = 0
  for (const byte of bytes) {
    kept.push(Uint8Array.of(byte))
    const { text: piece, nextOffset, lossy } = kept.readFrom(offset)
    assert.equal(lossy, false)
    seen += piece
    offset = nextOffset
  }
  assert.equal(seen, '溝🐳é')
  assert.deepEqual(kept.readFrom(0), { text: '溝🐳é', nextOffset: bytes.length, lossy: false })
})

test('a character that never comes whole is shown as a replacement at the end', () => {
  const kept = capture(100, 10, [Buffer.from('a溝').subarray(0, 3)])
  assert.deepEqual(kept.readFrom(0), { text: 'a', nextOffset: 1, lossy: false })
  kept.end()
  assert.deepEqual(kept.readFrom(0), { text: 'a\ufffd', nextOffset: 3, lossy: false })
})

test('a reader behind the gap is told that something is missing, once', () => {
  const kept = capture(4, 4, ['ab溝xxxxxxxx溝cd'])
  kept.end()
  const first = kept.readFrom(0)
  assert.deepEqual(first, { text: 'ab', nextOffset: 4, lossy: false })
  const second = kept.readFrom(first.nextOffset)
  assert.deepEqual(second, { text: 'cd', nextOffset: 18, lossy: true })
  assert.deepEqual(kept.readFrom(second.nextOffset), { text: '', nextOffset: 18, lossy: false })
})

test('a budget that is no number of bytes is refused', () => {
  for (const bytes of [-1, 1.5, NaN, Infinity])
    assert.throws(() => new OutputCapture({ headBytes: bytes, tailBytes: 1 }), RangeError)
})
