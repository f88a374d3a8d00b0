import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context } from '@dsh/harness/kernel'
import { endWithin } from './end.ts'

function mounted(undo: () => void | Promise<void>): Context {
  const ctx = new Context()
  ctx.plugin({ name: 'it', apply: () => undo })
  return ctx
}

test('a plugin that never ends is left behind in time', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ended = endWithin(
    mounted(() => new Promise(() => {})),
    5000,
  )
  await new Promise(resolve => setImmediate(resolve))
  t.mock.timers.tick(5000)
  assert.equal(await ended, undefined)
})

test('what fails while ending is given back, not thrown', async () => {
  const failing = mounted(() => {
    throw new Error('cannot end')
  })
  assert.ok((await endWithin(failing, 5000)) instanceof Error)
  assert.equal(
    await endWithin(
      mounted(() => {}),
      5000,
    ),
    undefined,
  )
})
