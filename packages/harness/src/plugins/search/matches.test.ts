import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MatchCollector } from './matches.ts'
import type { MatchLimits } from './matches.ts'

function collect(rows: readonly (readonly [path: string, row: string])[], limits: Partial<MatchLimits> = {}) {
  const all = { offset: 0, limit: 100, context: 0, maxLineBytes: 100, maxBytes: 10_000, ...limits }
  const collector = new MatchCollector(all)
  for (const [path, row] of rows) {
    const [, number = '', mark = '', line = ''] = /^(\d+)([:-])(.*)$/s.exec(row) ?? []
    collector.add(path, {
      path,
      number: Number(number),
      isMatch: mark === ':',
      line: Buffer.from(line, 'latin1'),
    })
  }
  return {
    rows: collector.files.flatMap(({ path, lines }) =>
      lines.map(({ number, isMatch, text }) => `${path} ${number}${isMatch ? ':' : '-'}${text}`),
    ),
    counts: [collector.matches, collector.fileCount, collector.kept],
  }
}

test('a window of the matches is kept, and all are counted', () => {
  const rows = [1, 2, 3, 4, 5].map(n => [n < 4 ? 'a' : 'b', `${n}:x`] as const)
  assert.deepEqual(collect(rows, { offset: 1, limit: 3 }), {
    rows: ['a 2:x', 'a 3:x', 'b 4:x'],
    counts: [5, 2, 3],
  })
})

test('context stays with the matches that are kept, each line once', () => {
  const rows = ['1-a', '2:M', '3-b', '4-c', '5:M', '6-d', '9-e', '10:M', '11-f'].map(
    row => ['f', row] as const,
  )
  assert.deepEqual(collect(rows, { context: 2, limit: 2 }).rows, [
    'f 1-a',
    'f 2:M',
    'f 3-b',
    'f 4-c',
    'f 5:M',
    'f 6-d',
    'f 9-e',
  ])
  assert.deepEqual(collect(rows, { context: 1, offset: 2 }).rows, ['f 9-e', 'f 10:M', 'f 11-f'])
})

test('context never goes over to another file', () => {
  const rows = [
    ['a', '1:M'],
    ['b', '1-x'],
    ['b', '2:M'],
  ] as const
  assert.deepEqual(collect(rows, { context: 3 }).rows, ['a 1:M', 'b 1-x', 'b 2:M'])
})

test('the bytes of all lines are bounded, and one match is kept in any case', () => {
  const rows = [1, 2, 3].map(n => ['a', `${n}:${'x'.repeat(50)}`] as const)
  assert.deepEqual(collect(rows, { maxBytes: 120 }).counts, [3, 1, 2])
  assert.deepEqual(collect(rows, { maxBytes: 1 }).counts, [3, 1, 1])
})

test('a long line is cut, a CR before the line end is none of it, and what is not UTF-8 is told', () => {
  const rows = [
    ['a', '1:0123456789'],
    ['a', '2:012345678\r'],
    ['a', '3:\xff\xfe'],
    ['a', '4:\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9'],
  ] as const
  assert.deepEqual(collect(rows, { maxLineBytes: 9 }).rows, [
    'a 1:012345…',
    'a 2:012345678',
    'a 3:(not UTF-8)',
    'a 4:ééé…',
  ])
})
