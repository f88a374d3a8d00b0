import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { foldersOf, quotedPath, rawPath, shownPath } from './paths.ts'

test('a path is shown as text, and as git quotes it where it is none', () => {
  assert.equal(shownPath('a/b c'), 'a/b c')
  assert.equal(shownPath('\xc3\xbc'), 'ü')
  assert.equal(shownPath('\xff"\n'), '"\\377\\"\\012"')
  assert.equal(shownPath('"a'), '"\\"a"')
  assert.equal(quotedPath('a\\b'), '"a\\\\b"')
})

test('whatever the bytes, what is shown leads back to them', () => {
  const bytes = fc
    .uint8Array({ minLength: 1, maxLength: 12 })
    .map(each => Buffer.from(each).toString('latin1'))
  fc.assert(fc.property(bytes, raw => assert.equal(rawPath(shownPath(raw)), raw)))
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), text => {
      const raw = Buffer.from(text, 'utf8').toString('latin1')
      assert.equal(rawPath(shownPath(raw)), raw)
    }),
  )
})

test('the folders of a path are named from the outside', () => {
  assert.deepEqual(foldersOf('a/b/c'), ['a', 'a/b'])
  assert.deepEqual(foldersOf('a'), [])
})
