import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Scrollback } from './scrollback.ts'

const roomy = { lines: 100, bytes: 10_000 }

function filled(pieces: readonly string[], limits = roomy): Scrollback {
  const scrollback = new Scrollback(limits)
  for (const piece of pieces) scrollback.append(piece)
  return scrollback
}

const all = { offset: 0, count: 1000 }

test('lines are as a person would have read them, whatever pieces they come in', () => {
  const { lines } = filled([
    'a\x1b[3',
    '1mred\x1b[0m\r\n10%\r',
    '20%\r100%\r\nab\bc\r\n\x1b]0;title\x07bell\x07\r\ndsh',
    '> ',
  ]).page(all)
  assert.deepEqual(lines, ['ared', '100%', 'ac', 'bell␇', 'dsh> '])
})

test('pages are counted from the newest line, and lines keep their numbers when old ones go', () => {
  const scrollback = filled([Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join('')], {
    lines: 10,
    bytes: 10_000,
  })
  const numbers = (first: number, last: number): string[] =>
    Array.from({ length: last - first + 1 }, (_, index) => String(first + index))
  assert.deepEqual(scrollback.page(all), { lines: numbers(21, 30), first: 21, total: 30, oldest: 21 })
  assert.deepEqual(scrollback.page({ offset: 2, count: 3 }), {
    lines: numbers(26, 28),
    first: 26,
    total: 30,
    oldest: 21,
  })
  assert.deepEqual(scrollback.page({ offset: 10, count: 3 }).lines, [])
  assert.deepEqual(scrollback.page({ offset: 99, count: 3 }).lines, [])
})

test('what is kept stays within both limits, a line without an end too', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('x\n', 'long line of text\n', '🐳é\n', 'no end '), { maxLength: 200 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 20, max: 200 }),
      (pieces, lines, bytes) => {
        const page = filled(pieces, { lines, bytes }).page(all)
        const kept = page.lines.slice(0, page.total === page.first + lines ? -1 : undefined)
        assert.ok(kept.length <= lines + 1)
        assert.equal(page.total, page.first + page.lines.length - 1)
      },
    ),
  )
  const endless = new Scrollback({ lines: 10, bytes: 100_000 })
  for (let index = 0; index < 1000; index++) endless.append('🐳'.repeat(1000))
  const { lines } = endless.page(all)
  assert.ok(lines.join('').length * 2 <= 100_000 + 64 * 1024)
  assert.ok(lines.every(line => line.isWellFormed()))
})
