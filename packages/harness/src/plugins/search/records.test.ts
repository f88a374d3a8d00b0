import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CountReader, LineReader, PathReader } from './records.ts'

/** What a reader makes of an output, the same whether it comes at once or byte by byte. */
function read<T>(output: Buffer, make: (take: (found: T) => void) => { push(piece: Buffer): boolean }): T[] {
  const [whole, torn]: [T[], T[]] = [[], []]
  make(found => void whole.push(found)).push(output)
  const reader = make(found => void torn.push(found))
  for (const byte of output) reader.push(Buffer.from([byte]))
  assert.deepEqual(torn, whole)
  return whole
}

const linesIn = (output: Buffer) =>
  read<unknown[]>(
    output,
    take =>
      new LineReader(({ path, number, isMatch, line }) => {
        take([path, number, isMatch, line.toString('latin1')])
        return true
      }),
  )

test('lines are read with their path, number and kind, wherever pieces are torn', () => {
  const output = Buffer.from('./ä.ts\x0012:one: 2-x\n./ä.ts\x0013-\n./b:1-\nc\x001:x\r\n')
  assert.deepEqual(linesIn(output), [
    ['./ä.ts', 12, true, 'one: 2-x'],
    ['./ä.ts', 13, false, ''],
    ['./b:1-\nc', 1, true, 'x\r'],
  ])
})

test('a note of a binary file between lines is passed over', () => {
  const note = './a.bin: binary file matches (found "\\0" byte around offset 3)\n'
  const output = Buffer.from(`./a\x001:x\n${note}./b\x002:y\n${note}`)
  assert.deepEqual(linesIn(output), [
    ['./a', 1, true, 'x'],
    ['./b', 2, true, 'y'],
  ])
})

test('a line that is not whole is not given', () => {
  assert.deepEqual(linesIn(Buffer.from('./a\x001:x\n./a\x002:y')), [['./a', 1, true, 'x']])
})

test('paths and counts are read wherever pieces are torn', () => {
  const paths = read<string>(
    Buffer.from('./a\x00./b\nc\x00./d'),
    take => new PathReader(path => (take(path), true)),
  )
  assert.deepEqual(paths, ['./a', './b\nc'])
  const counts = read<unknown>(
    Buffer.from('./a\x003\n./b\nc\x0012\n'),
    take => new CountReader((path, count) => (take([path, count]), true)),
  )
  assert.deepEqual(counts, [
    ['./a', 3],
    ['./b\nc', 12],
  ])
})

test('whoever has enough is given nothing more', () => {
  const seen: string[] = []
  const reader = new PathReader(path => seen.push(path) < 2)
  assert.equal(reader.push(Buffer.from('a\x00b\x00c\x00')), false)
  assert.deepEqual(seen, ['a', 'b'])
})
