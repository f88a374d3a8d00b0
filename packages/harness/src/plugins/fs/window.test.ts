import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WindowReader } from './window.ts'
import type { WindowLimits } from './window.ts'

function read(pieces: readonly string[], limits: Partial<WindowLimits> = {}) {
  const reader = new WindowReader({
    offset: 1,
    limit: 2000,
    maxLineLength: 2000,
    maxBytes: 51_200,
    ...limits,
  })
  for (const piece of pieces) reader.push(piece)
  const { lines, totalLines, isCapped } = reader.end()
  return { lines: lines.map(({ text }) => text), first: lines[0]?.number, totalLines, isCapped }
}

test('a line end at the end begins no further line', () => {
  assert.deepEqual(read(['a\nb']).lines, ['a', 'b'])
  assert.deepEqual(read(['a\nb\n']).lines, ['a', 'b'])
  assert.deepEqual(read(['a\n\n']).lines, ['a', ''])
  assert.deepEqual(read(['']), { lines: [], first: undefined, totalLines: 0, isCapped: false })
  assert.deepEqual(read(['\r\n']).lines, [''])
})

test('lines are the same whatever pieces the text comes in', () => {
  const text = fc.array(fc.constantFrom('a', 'é', '\n', '\r', '\r\n'), { maxLength: 12 })
  fc.assert(
    fc.property(text, parts => {
      const whole = parts.join('')
      const expected = whole.split(/\r\n|\n|\r/)
      if (expected.at(-1) === '') expected.pop()
      assert.deepEqual(read([whole]).lines, expected)
      assert.deepEqual(read(whole.split('')).lines, expected)
    }),
  )
})

test('a window keeps its lines and counts the others', () => {
  const text = Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join('')
  assert.deepEqual(read([text], { offset: 40, limit: 2 }), {
    lines: ['40', '41'],
    first: 40,
    totalLines: 100,
    isCapped: false,
  })
  assert.deepEqual(read([text], { offset: 101 }).lines, [])
})

test('a long line is cut at the limit, never inside a character, and says so', () => {
  const cut = '... (line truncated to 5 chars)'
  const limits = { maxLineLength: 5 }
  assert.deepEqual(read(['12345\n123456\n'], limits).lines, ['12345', `12345${cut}`])
  assert.deepEqual(read(['1234🐳\n'], limits).lines, [`1234${cut}`])
  assert.deepEqual(read(['123🐳4\n'], limits).lines, [`123🐳${cut}`])
  assert.deepEqual(read(['1234', '\ud83d', '\udc33', 'x'], limits).lines, [`1234${cut}`])
})

test('the bytes of all lines are bounded, and one line is given in any case', () => {
  assert.deepEqual(read(['1234\n1234\n1\n'], { maxBytes: 10 }), {
    lines: ['1234', '1234'],
    first: 1,
    totalLines: 3,
    isCapped: true,
  })
  assert.deepEqual(read(['1234\n1234\n'], { maxBytes: 10 }).isCapped, false)
  assert.deepEqual(read(['ééé\né\n'], { maxBytes: 7 }).lines, ['ééé'])
  assert.deepEqual(read(['123456789\n'], { maxBytes: 4 }).lines, ['1…'])
})

test('a giant line without end is held no longer than it is shown', () => {
  const reader = new WindowReader({ offset: 1, limit: 1, maxLineLength: 10, maxBytes: 100 })
  const piece = 'x'.repeat(1 << 20)
  const before = process.memoryUsage().heapUsed
  for (let count = 0; count < 500; count++) reader.push(piece)
  assert.ok(process.memoryUsage().heapUsed - before < 20 << 20)
  assert.deepEqual(reader.end().totalLines, 1)
})
