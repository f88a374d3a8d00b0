import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import fc from 'fast-check'
import { idOfFolder, projectFolder, sessionFolder } from './layout.ts'

test('a project folder is named after its path', () => {
  const names: readonly (readonly [cwd: string | undefined, folder: string])[] = [
    [undefined, '_no-cwd'],
    ['/', '--root--'],
    ['/home/me/my-app', '--home-me-my-app--'],
    ['/home//me/', '--home-me---'],
    ['C:\\Users\\me', '--C-Users-me--'],
    ['/with space/漢', '--with~0020space-~6f22--'],
  ]
  for (const [cwd, folder] of names) assert.equal(projectFolder(cwd), folder)
})

test('a project folder fits a file system, and is not cut inside an escape', () => {
  for (let length = 200; length < 300; length += 1) {
    const name = projectFolder(`/${'a'.repeat(length % 7)}${'漢'.repeat(length)}`)
    assert.ok(name.length <= 255)
    assert.match(name, /^--a*(~6f22)*--$/)
  }
})

test('every id has a folder of its own, from which it is known again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), text => {
      const name = sessionFolder(SessionId(text))
      assert.match(name, /^[A-Za-z0-9._~-]+$/)
      assert.ok(name !== '.' && name !== '..')
      assert.equal(idOfFolder(name), text)
    }),
  )
  assert.equal(sessionFolder(SessionId('..')), '~002e~002e')
  assert.equal(sessionFolder(SessionId('a/b~\ud800')), 'a~002fb~007e~d800')
  assert.throws(() => sessionFolder(SessionId('')), RangeError)
})

test('a name that no id has is not taken for one', () => {
  for (const name of ['a b', 'a~', 'a~0061', 'a~GGGG', '~002E', '', 'a/b'])
    assert.equal(idOfFolder(name), undefined)
})
