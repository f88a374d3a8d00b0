import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { runCached } from './code-cache.ts'
import type { CachedScript } from './code-cache.ts'

const text = `(function (module, require, scriptUrl) { 'use strict';
  const { basename } = require('node:path')
  module.exports = {
    add: (a, b) => a + b,
    name: basename(scriptUrl),
    load: () => import('./late.mjs'),
    freeze() { Object.freeze(module.exports).add = 1 },
  }
})`

function setup(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'dsh-code-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'script.cjs')
  const cache = join(folder, 'script.cjs.cache')
  writeFileSync(file, text)
  writeFileSync(join(folder, 'late.mjs'), 'export const late = true')
  const runIn = (where: string | undefined): CachedScript => runCached(pathToFileURL(file), where)
  const run = (): CachedScript => runIn(folder)
  const add = ({ exports }: CachedScript): unknown =>
    (exports['add'] as (a: number, b: number) => number)(1, 2)
  return { folder, cache, run, runIn, add }
}

test('a script knows its place, requires and imports, and is strict', async t => {
  const { run, add } = setup(t)
  const script = run()
  assert.equal(add(script), 3)
  assert.equal(script.exports['name'], 'script.cjs')
  const load = script.exports['load'] as () => Promise<{ readonly late: boolean }>
  assert.equal((await load()).late, true)
  assert.throws(script.exports['freeze'] as () => void, TypeError)
})

test('what one process compiled is there for the next, and grows for some rounds', t => {
  const { cache, run, add } = setup(t)
  run().keep()
  const unused = readFileSync(cache).length
  const second = run()
  add(second)
  second.keep()
  assert.ok(readFileSync(cache).length > unused, 'the function that was called is in the cache')
  for (let round = 3; round <= 5; round++) run().keep()
  const last = readFileSync(cache)
  const sixth = run()
  sixth.keep()
  assert.equal(add(sixth), 3)
  assert.deepEqual(readFileSync(cache), last)
})

test('a cache that is damaged, cut off or of something else is made anew', t => {
  const { cache, run, add } = setup(t)
  run().keep()
  const whole = readFileSync(cache)
  const flipped = Buffer.from(whole)
  flipped[200] = (flipped[200] ?? 0) ^ 0xff
  for (const bytes of [
    flipped,
    whole.subarray(0, 300),
    whole.subarray(0, 3),
    Buffer.from('{}'.repeat(100)),
  ]) {
    writeFileSync(cache, bytes)
    const script = run()
    assert.equal(add(script), 3)
    script.keep()
    assert.equal(readFileSync(cache).readUInt32LE(4), 1)
  }
})

test('without a folder, or one that cannot be written, a script just runs', t => {
  const { folder, cache, runIn, add } = setup(t)
  for (const where of [undefined, join(folder, 'gone')]) {
    const script = runIn(where)
    assert.equal(add(script), 3)
    script.keep()
  }
  assert.equal(existsSync(cache), false)
})

test('nothing but the cache is left behind, for its owner alone', t => {
  const { folder, run } = setup(t)
  chmodSync(folder, 0o700)
  run().keep()
  assert.deepEqual(readdirSync(folder).sort(), ['late.mjs', 'script.cjs', 'script.cjs.cache'])
})
