import assert from 'node:assert/strict'
import { test } from 'node:test'
import { takenOutText, unwritable } from './giving-away.ts'

test('what was taken out is told by kind, and that nobody should rely on it', () => {
  const counts = new Map([
    ['key', 2],
    ['home', 1],
  ])
  assert.equal(takenOutText({ counts }), 'taken out: 2 × key, 1 × home; look before you give it away')
  assert.equal(
    takenOutText({ counts: new Map() }),
    'nothing that looks like a secret was found; look before you give it away',
  )
  assert.equal(takenOutText(undefined), 'nothing was taken out: look before you give it away')
})

test('a file that is not written is named with the way out, on one line', () => {
  const told = (file: string, code: string): readonly unknown[] => {
    const cause = Object.assign(new Error('no'), { code })
    const { code: own, message, exitCode, fix } = unwritable(file, { cause, instead: 'dsh other' })
    return [own, message, exitCode, fix]
  }
  assert.deepEqual(told('a b', 'EEXIST'), ['OUTPUT_FILE', '"a b" is there already', 2, "rm 'a b'"])
  assert.deepEqual(told('a\n\u001b', 'ENOSPC'), [
    'OUTPUT_FILE',
    '"a ⏎ ␛" cannot be written (ENOSPC)',
    2,
    'dsh other',
  ])
})
