import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveText } from './live.ts'

test('bytes become whole characters as they come', () => {
  const told: string[] = []
  const live = new LiveText(text => told.push(text))
  for (const byte of Buffer.from('é\x1b[1m🐳')) live.push(Uint8Array.of(byte))
  live.push(Uint8Array.of(0xe6))
  live.end()
  assert.deepEqual(told, ['é', '🐳', '\ufffd'])
})

test('of a flood a part is told, and what is missing is said with the next piece', () => {
  let now = 0
  const told: string[] = []
  const live = new LiveText(
    text => told.push(text),
    () => now,
  )
  const piece = Buffer.alloc(32 * 1024, 'x')
  for (let count = 0; count < 100; count++) live.push(piece)
  assert.equal(told.join('').length, 64 * 1024)
  now = 100
  live.push(Buffer.from('end'))
  live.end()
  assert.equal(told.at(-1), `\n[… ${98 * 32 * 1024} bytes are not shown …]\nend`)
})
