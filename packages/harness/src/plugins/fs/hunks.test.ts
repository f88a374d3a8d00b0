import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { hunksOf } from './hunks.ts'
import { keptLines } from './line-diff.ts'

const numbers = (count: number): string =>
  Array.from({ length: count }, (_, index) => `${index + 1}\n`).join('')

test('a hunk holds the changed lines with three lines around them', () => {
  assert.deepEqual(hunksOf(numbers(9), numbers(9).replace('5', 'five')), [
    { oldStart: 2, newStart: 2, lines: [' 2', ' 3', ' 4', '-5', '+five', ' 6', ' 7', ' 8'] },
  ])
})

test('changes far from each other make a hunk each, near ones share it', () => {
  const before = numbers(30)
  const after = before.replace('3\n', '').replace('20\n', 'a\n20\n').replace('26\n', 'b\n')
  assert.deepEqual(
    hunksOf(before, after).map(({ oldStart, newStart, lines }) => [oldStart, newStart, lines.join('')]),
    [
      [1, 1, ' 1 2-3 4 5 6'],
      [17, 16, ' 17 18 19+a 20 21 22 23 24 25-26+b 27 28 29'],
    ],
  )
})

test('line ends at the end of a text are no line of their own', () => {
  assert.deepEqual(hunksOf('a\n', 'b\n'), [{ oldStart: 1, newStart: 1, lines: ['-a', '+b'] }])
  assert.deepEqual(hunksOf('', 'b'), [{ oldStart: 1, newStart: 1, lines: ['-', '+b'] }])
  assert.deepEqual(hunksOf('a\n', 'a\n'), [])
})

test('kept lines are a longest common subsequence', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 })
  fc.assert(
    fc.property(lines, lines, (old, fresh) => {
      const kept = keptLines(old, fresh)
      const pairs = kept.flatMap((from, to) => (from === -1 ? [] : [[from, to] as const]))
      for (const [from, to] of pairs) assert.equal(old[from], fresh[to])
      assert.deepEqual(
        pairs.map(([from]) => from),
        pairs.map(([from]) => from).toSorted((a, b) => a - b),
      )
      assert.equal(new Set(pairs.map(([from]) => from)).size, pairs.length)
      assert.equal(pairs.length, longestCommon(old, fresh))
    }),
  )
})

function longestCommon(old: readonly string[], fresh: readonly string[]): number {
  const [first, ...rest] = old
  if (first === undefined || fresh.length === 0) return 0
  const at = fresh.indexOf(first)
  const without = longestCommon(rest, fresh)
  return at === -1 ? without : Math.max(without, 1 + longestCommon(rest, fresh.slice(at + 1)))
}

test('two long texts without a common line give one whole replacement at once', () => {
  const text = (word: string): string => Array.from({ length: 20_000 }, (_, index) => word + index).join('\n')
  const [hunk, ...others] = hunksOf(text('a'), text('b'))
  assert.equal(others.length, 0)
  assert.equal(hunk?.lines.length, 40_000)
})

test('hunks tell exactly what became of a text, wherever it is long and alike', () => {
  const line = fc.constantFrom('a', 'b', '', 'x'.repeat(5000))
  const lines = fc.array(line, { maxLength: 12 })
  fc.assert(
    fc.property(lines, lines, lines, lines, (head, old, fresh, tail) => {
      const [before, after] = [old, fresh].map(middle => [...head, ...middle, ...tail].join('\n'))
      assert.equal(patched(before ?? '', hunksOf(before ?? '', after ?? '')), after)
    }),
  )
})

/** `before` with what `hunks` say, each at the line it names. */
function patched(before: string, hunks: ReturnType<typeof hunksOf>): string {
  const lines = before.split('\n')
  for (const { oldStart, newStart, lines: rows } of hunks) {
    const old = rows.filter(row => !row.startsWith('+')).map(row => row.slice(1))
    assert.deepEqual(lines.slice(newStart - 1, newStart - 1 + old.length), old, `hunk at ${oldStart}`)
    lines.splice(
      newStart - 1,
      old.length,
      ...rows.filter(row => !row.startsWith('-')).map(row => row.slice(1)),
    )
  }
  return lines.join('\n')
}
