import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  cutText,
  describeOmitted,
  ItemRetainer,
  joinEnds,
  keepText,
  TextRetainer,
  utf8Length,
  wellFormed,
} from './index.ts'

test('a text within its budget is given whole', () => {
  assert.equal(cutText('día', 4), 'día')
  assert.deepEqual(keepText('día', { headBytes: 2, tailBytes: 2 }), {
    head: 'día',
    tail: '',
    omittedBytes: 0,
  })
})

test('a cut keeps whole characters and counts the mark against the budget', () => {
  assert.equal(cutText('漢字漢字', 8), '漢…')
  assert.equal(cutText('漢字漢字', 8, { keep: 'tail' }), '…字')
  assert.equal(cutText('aé😀😀b', 9, { mark: '' }), 'aé😀')
  assert.equal(cutText('😀', 3, { mark: '' }), '')
})

test('a mark that does not fit is left out', () => {
  assert.equal(cutText('abcdef', 2), 'ab')
  assert.equal(cutText('abcdef', 0), '')
})

test('a mark is told how many bytes are missing', () => {
  const mark = (bytes: number): string => `[${bytes} bytes]`
  assert.equal(cutText('0123456789'.repeat(4), 20, { keep: 'ends', mark }), '01234[30 bytes]56789')
})

test('a cut never tears a terminal sequence', () => {
  const red = '\u001b[31mred\u001b[0m'
  assert.equal(cutText(red, 3, { mark: '' }), '')
  assert.equal(cutText(red, 5, { mark: '' }), '\u001b[31m')
  assert.equal(cutText(red, 10, { mark: '' }), '\u001b[31mred')
  assert.equal(cutText(red, 9, { keep: 'tail', mark: '' }), 'red\u001b[0m')
  const link = '\u001b]8;;https://example.org\u0007text'
  assert.equal(cutText(link, 12, { mark: '' }), '')
  assert.equal(cutText(link, 12, { keep: 'tail', mark: '' }), 'text')
})

test('half a surrogate pair becomes a replacement character', () => {
  assert.equal(wellFormed('a\ud800b'), 'a\ufffdb')
  assert.equal(cutText('a\ud800b', 100), 'a\ufffdb')
})

test('a budget that is no whole number is refused', () => {
  assert.throws(() => cutText('a', -1), RangeError)
  assert.throws(() => keepText('a', { headBytes: 0.5 }), RangeError)
})

test('a retainer joins pieces torn inside a character', () => {
  const retainer = new TextRetainer({ headBytes: 6, tailBytes: 6 })
  for (const byte of Buffer.from('漢字漢字')) retainer.push(Uint8Array.of(byte))
  assert.deepEqual(retainer.result(), { head: '漢字漢字', tail: '', omittedBytes: 0 })
  retainer.push('\ud83d')
  retainer.push('\ude00')
  assert.deepEqual(retainer.result(), { head: '漢字', tail: '😀', omittedBytes: 6 })
})

test('a character on the seam survives as long as nothing is omitted', () => {
  const retainer = new TextRetainer({ headBytes: 4, tailBytes: 5 })
  retainer.push('漢字漢')
  assert.deepEqual(retainer.result(), { head: '漢字漢', tail: '', omittedBytes: 0 })
  retainer.push('字')
  assert.deepEqual(retainer.result(), { head: '漢', tail: '字', omittedBytes: 6 })
})

test('what is not UTF-8 becomes replacement characters', () => {
  const retainer = new TextRetainer({ headBytes: 10 })
  retainer.push(Uint8Array.of(0x61, 0xff, 0x62))
  assert.equal(retainer.result().head, 'a\ufffdb')
})

test('a retainer holds no more than its budgets', () => {
  const retainer = new TextRetainer({ headBytes: 100, tailBytes: 100 })
  for (let line = 0; line < 20_000; line++) retainer.push(`line ${line}\n`)
  const { head, tail, omittedBytes } = retainer.result()
  assert.equal(utf8Length(head), 100)
  assert.equal(utf8Length(tail), 100)
  assert.ok(tail.endsWith('line 19999\n'))
  assert.equal(omittedBytes, retainer.totalBytes - 200)
})

test('whatever the text, the pieces and the budgets, ends are whole and the count of the missing is exact', () => {
  const text = fc.array(fc.constantFrom('a', 'é', '漢', '😀', '\u001b[1m', '\n')).map(parts => parts.join(''))
  const budget = fc.nat({ max: 30 })
  fc.assert(
    fc.property(text, budget, budget, fc.nat({ max: 10 }), (whole, headBytes, tailBytes, size) => {
      const retainer = new TextRetainer({ headBytes, tailBytes })
      const bytes = Buffer.from(whole)
      for (let at = 0; at < bytes.length; at += size + 1) retainer.push(bytes.subarray(at, at + size + 1))
      const kept = retainer.result()
      assert.deepEqual(kept, keepText(whole, { headBytes, tailBytes }))
      assert.ok(whole.startsWith(kept.head) && whole.endsWith(kept.tail))
      if (kept.omittedBytes > 0) {
        assert.ok(utf8Length(kept.head) <= headBytes && utf8Length(kept.tail) <= tailBytes)
        assert.ok(!['\u001b', '\u001b[', '\u001b[1'].some(torn => kept.head.endsWith(torn)))
        assert.ok(!['[1m', '1m', 'm'].some(torn => kept.tail.startsWith(torn)))
      }
      assert.equal(utf8Length(kept.head) + utf8Length(kept.tail) + kept.omittedBytes, bytes.length)
    }),
  )
})

test('an item retainer keeps the first items and counts all', () => {
  const retainer = new ItemRetainer<number>({ maxItems: 2 })
  for (const item of [1, 2, 3, 4]) retainer.push(item)
  assert.deepEqual([retainer.kept, retainer.seen, retainer.omitted], [[1, 2], 4, { kind: 'exact', count: 2 }])
})

test('what is missing is said in words', () => {
  assert.equal(describeOmitted({ kind: 'none' }, 'line'), '')
  assert.equal(describeOmitted({ kind: 'exact', count: 0 }, 'line'), '')
  assert.equal(describeOmitted({ kind: 'exact', count: 1 }, 'line'), '1 line omitted')
  assert.equal(describeOmitted({ kind: 'exact', count: 2 }, 'line'), '2 lines omitted')
  assert.equal(describeOmitted({ kind: 'unknown' }, 'line'), 'more lines omitted')
})

test('what is left out is told where it is missing, and where it can be read', () => {
  const ends = { head: 'a', tail: 'z', omittedBytes: 24 }
  assert.equal(joinEnds(ends, undefined), 'a\n[… 24 bytes left out …]\nz')
  assert.equal(joinEnds(ends, 'abc'), 'a\n[… 24 bytes left out; read artifact:abc for more …]\nz')
  assert.equal(joinEnds({ head: 'all', tail: '', omittedBytes: 0 }, undefined), 'all')
})
