import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWithin } from './index.ts'

test('a folder holds itself and what lies below it, however their ends are written', () => {
  const cases: readonly (readonly [folder: string, path: string, isHeld: boolean])[] = [
    ['/srv/shop', '/srv/shop', true],
    ['/srv/shop', '/srv/shop/a', true],
    ['/srv/shop', '/srv/shop/a/b/', true],
    ['/srv/shop/', '/srv/shop/a', true],
    ['/srv/shop/', '/srv/shop', true],
    ['/srv/shop', '/srv/shop/', true],
    ['/srv/shop/', '/srv/shop/', true],
    ['/srv/shop', '/srv/shop/..x', true],
    ['/srv/shop', '/srv/shop/...', true],
    ['/', '/', true],
    ['/', '/srv', true],
    ['/srv', '/', false],
    ['/srv/shop', '/srv', false],
    ['/srv/shop', '/srv/shopshop', false],
    ['/srv/shop', '/srv/..work', false],
    ['/srv/shop/', '/srv/shopshop', false],
    ['/srv/shop', '/other/srv/shop', false],
  ]
  for (const [folder, path, isHeld] of cases)
    assert.equal(isWithin(folder, path), isHeld, `${path} in ${folder}`)
})
