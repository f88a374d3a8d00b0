import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { SessionEvent } from '@dsh/protocol'
import { toJsonText } from '../../../kernel/index.ts'
import { longestInlineText, putBack, toEventLine } from './spill.ts'
import type { Spill } from './spill.ts'

const long = 'ñ'.repeat(longestInlineText / 2 + 1)

function eventWith(data: unknown): SessionEvent {
  return { type: 'x/data', seq: 0, time: 1, data } as unknown as SessionEvent
}

/** The line of an event, and its event put together again. */
async function roundTrip(data: unknown) {
  const kept = new Map<string, Buffer>()
  const line = await toEventLine(eventWith(data), async bytes => {
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    kept.set(sha256, bytes)
    return sha256
  })
  const { spill = [], ...event } = JSON.parse(line) as { spill?: Spill[]; data: unknown }
  for (const each of spill) assert.ok(putBack(event, each, kept.get(each.sha256)?.toString() ?? ''))
  return { line, spill, kept, data: event.data }
}

test('a text above the limit leaves the line, wherever it stands', async () => {
  const data = { a: [1, { text: long }], 'b.c': { '': long }, short: 'x'.repeat(longestInlineText) }
  const { line, spill, kept, data: back } = await roundTrip(data)
  assert.deepEqual(back, data)
  assert.deepEqual(
    spill.map(({ path, bytes }) => ({ path, bytes })),
    [
      { path: ['data', 'a', 1, 'text'], bytes: longestInlineText + 2 },
      { path: ['data', 'b.c', ''], bytes: longestInlineText + 2 },
    ],
  )
  assert.equal(kept.size, 1)
  assert.ok(line.length < longestInlineText + 1000)
})

test('the limit counts bytes, and what is at it stays', async () => {
  const { spill } = await roundTrip({
    text: 'x'.repeat(longestInlineText),
    list: Array.from({ length: 40_000 }, () => 1),
  })
  assert.deepEqual(spill, [])
})

test('half a character cannot be kept as UTF-8, so its text stays in the line', async () => {
  const data = { text: `${long}\ud83c` }
  const { spill, data: back } = await roundTrip(data)
  assert.deepEqual(spill, [])
  assert.deepEqual(back, data)
})

test('the event itself is left as it was', async () => {
  const event = eventWith(Object.freeze({ text: long }))
  await toEventLine(Object.freeze(event), async () => 'hash')
  assert.equal((event.data as unknown as { text: string }).text, long)
})

test('keys that prototypes have are data', async () => {
  const data: unknown = JSON.parse(`{"__proto__":{"constructor":"${long}"},"toString":"${long}"}`)
  const { spill, data: back } = await roundTrip(data)
  assert.equal(spill.length, 2)
  assert.equal(JSON.stringify(back), JSON.stringify(data))
})

test('a path of a foreign log reaches nothing but its own event', () => {
  const event = { data: { text: '' } }
  for (const path of [
    ['__proto__', 'polluted'],
    ['data', 'constructor', 'name'],
    ['data', 'other'],
    ['data'],
    [],
  ]) {
    assert.equal(putBack(event, { path, sha256: '', bytes: 0 }, 'x'), false)
  }
  assert.deepEqual(event, { data: { text: '' } })
  assert.equal(({} as { polluted?: unknown }).polluted, undefined)
})

test('a deep value has the text that a shallow one has', () => {
  const value = { a: [1, 'x"\n', null, { b: [], c: {} }], '\u2028': true, n: -1.5e300 }
  let deep: unknown = value
  for (let level = 0; level < 50_000; level += 1) deep = { in: [deep] }
  const text = toJsonText(deep as never)
  const start = '{"in":['.repeat(50_000)
  assert.equal(text, `${start}${JSON.stringify(value)}${']}'.repeat(50_000)}`)
})
