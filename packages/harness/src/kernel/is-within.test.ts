import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWithin } from './index.ts'

test('a folder holds itself and what lies below it, however their ends are written', () => {
  const cases: readonly (readonly [folder: string, path: string, isHeld: boolean])[] = [
    ['/srv/work', '/srv/work', true],
    ['/srv/work', '/srv/work/a', true],
    ['/srv/work', '/srv/work/a/b/', true],
    ['/srv/work/', '/srv/work/a', true],
    ['/srv/work/', '/srv/work', true],
    ['/srv/work', '/srv/work/', true],
    ['/srv/work/', '/srv/work/', true],
    ['/srv/work', '/srv/work/..x', true],
    ['/srv/work', '/srv/work/...', true],
    ['/', '/', true],
    ['/', '/srv', true],
    ['/srv', '/', false],
    ['/srv/work', '/srv', false],
    ['/srv/work', '/srv/workshop', false],
    ['/srv/work', '/srv/..work', false],
    ['/srv/work/', '/srv/workshop', false],
    ['/srv/work', '/other/srv/work', false],
  ]
  for (const [folder, path, isHeld] of cases)
    assert.equal(isWithin(folder, path), isHeld, `${path} in ${folder}`)
})
