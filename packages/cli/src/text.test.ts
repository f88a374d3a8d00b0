import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duration, grouped, inert, size } from './text.ts'

test('nothing in inert text acts on a terminal', () => {
  assert.equal(inert('\u001b[2J\u001b]0;title\u0007x'), '␛[2J␛]0;title␇x')
  assert.equal(inert('a\u009b31mb\u007f\0'), 'a31mb␡␀')
  assert.equal(inert('safe\rspoofed'), 'safespoofed')
  assert.equal(inert('abc\u202ecod.exe\u2066\u200f'), 'abccod.exe')
})

test('inert text keeps line breaks, tabs and every language', () => {
  const text = 'a\tb\nс 你好 👩‍💻 é\n'
  assert.equal(inert(text), text)
})

test('a time span is shown in the unit that fits', () => {
  const spans = [-5, 0, 12.4, 999, 1000, 59_949, 59_950, 185_000]
  assert.deepEqual(spans.map(duration), [
    '0 ms',
    '0 ms',
    '12 ms',
    '999 ms',
    '1.0 s',
    '59.9 s',
    '1 min 0 s',
    '3 min 5 s',
  ])
})

test('counts are grouped by thousands', () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(grouped), ['0', '999', '1,000', '1,234,567'])
})

test('sizes have the unit that fits', () => {
  assert.deepEqual([0, 999, 1000, 28_440, 999_949, 999_950].map(size), [
    '0 B',
    '999 B',
    '1.0 KB',
    '28.4 KB',
    '999.9 KB',
    '1.0 MB',
  ])
})
