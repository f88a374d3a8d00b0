import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MarkerStream } from './markers.ts'
import type { Piece } from './markers.ts'

const nonce = '0123456789abcdef'
const mark = (word: string, by = nonce): string => `\x1b]133;${word};${by}\x07`

function read(parts: readonly Uint8Array[]): Piece[] {
  const stream = new MarkerStream(nonce)
  const pieces = [...parts.flatMap(part => stream.push(part)), ...stream.end()]
  const joined: Piece[] = []
  for (const piece of pieces) {
    const last = joined.at(-1)
    if (piece.kind === 'text' && last?.kind === 'text')
      joined[joined.length - 1] = { kind: 'text', text: last.text + piece.text }
    else joined.push(piece)
  }
  return joined
}

const whole = (text: string): Piece[] => read([Buffer.from(text)])

test('marks tell where commands begin and how they ended, between what was printed', () => {
  assert.deepEqual(whole(`a${mark('C')}b${mark('R;12')}c\x1b[1m${mark('D;130')}dsh> `), [
    { kind: 'text', text: 'a' },
    { kind: 'start' },
    { kind: 'text', text: 'b' },
    { kind: 'start', number: 12 },
    { kind: 'text', text: 'c\x1b[1m' },
    { kind: 'prompt', exitCode: 130 },
    { kind: 'text', text: 'dsh> ' },
  ])
})

test('a mark that is not exactly one of this shell is text', () => {
  for (const fake of [
    mark('D;0', 'f'.repeat(16)),
    mark('D;0', ''),
    `\x1b]133;D;0\x07`,
    mark('D;$?'),
    mark('D;1234'),
    mark('D'),
    mark('C').replace('\x07', '\x1b\\'),
    mark('C').replace('\x1b', '^['),
  ])
    assert.deepEqual(whole(fake), [{ kind: 'text', text: fake }])
})

test('marks are found whatever pieces they come in, and no character is torn', () => {
  const piece = fc.constantFrom(
    mark('C'),
    mark('D;7'),
    mark('D;0', 'x'),
    '\x1b',
    '\x1b]133;',
    'é🐳',
    '\x07',
    'ab\r\n',
  )
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }),
      fc.array(fc.nat(40), { maxLength: 30 }),
      (parts, cuts) => {
        const bytes = Buffer.from(parts.join(''))
        const places = [0, ...cuts.filter(cut => cut < bytes.length).toSorted((a, b) => a - b), bytes.length]
        const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
        assert.deepEqual(read(pieces), whole(parts.join('')))
      },
    ),
  )
})

test('text is not held back for a mark that cannot come any more', () => {
  const stream = new MarkerStream(nonce)
  assert.deepEqual(stream.push(Buffer.from('a\x1b]133;')), [{ kind: 'text', text: 'a' }])
  const long = 'x'.repeat(200)
  assert.deepEqual(stream.push(Buffer.from(long)), [{ kind: 'text', text: `\x1b]133;${long}` }])
  assert.deepEqual(stream.push(Buffer.from('\x1b[31m')), [{ kind: 'text', text: '\x1b[31m' }])
  assert.deepEqual(stream.push(Buffer.from('\x1b]0;title')), [{ kind: 'text', text: '\x1b]0;title' }])
})
