import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore } from '../memory-store.ts'
import { headerOf, turnOf } from '../contracts/store-samples.ts'
import { logOf } from '../given.ts'
import { CrashLedger, watchMedium } from './ledger.ts'

const header = headerOf('s1')
const { id } = header
const events = logOf(...turnOf('a'), ...turnOf('b', 2))

function setup() {
  const store = new MemoryStore()
  let moment = 0
  const ledger = new CrashLedger(() => moment)
  return {
    store,
    ledger,
    medium: watchMedium(store.open(), ledger),
    at: (now: number) => void (moment = now),
  }
}

test('events are expected from the moment they are given on, and safe once that was acknowledged', async () => {
  const { ledger, medium, at } = setup()
  const writer = medium.begin(header)
  at(3)
  const appended = writer.append(events.slice(0, 4))
  at(5)
  await appended
  assert.equal(ledger.asOf(2).size, 0)
  assert.deepEqual([ledger.asOf(4).get(id)?.events.length, ledger.asOf(4).get(id)?.safe], [4, 0])
  assert.deepEqual([ledger.asOf(5).get(id)?.events, ledger.current.get(id)?.safe], [events.slice(0, 4), 4])
})

test('events of a write that failed may be stored all the same, and are no longer expected once others were given', async () => {
  const { store, ledger, medium } = setup()
  const writer = medium.begin(header)
  await writer.append(events.slice(0, 2))
  store.failure = new Error('full')
  await assert.rejects(writer.append(events.slice(2, 8)))
  assert.deepEqual([ledger.current.get(id)?.events.length, ledger.current.get(id)?.safe], [8, 2])
  store.failure = undefined
  await writer.append(events.slice(2, 4))
  assert.deepEqual([ledger.current.get(id)?.events.length, ledger.current.get(id)?.safe], [4, 4])
})

test('what is safe is not replaced by what a program offers that lost the session', () => {
  const { ledger } = setup()
  ledger.offer(header, events.slice(0, 4))
  ledger.confirm(header, 4)
  ledger.offer(header, [{ ...(events[2] as (typeof events)[0]), time: 1 }])
  assert.deepEqual(ledger.current.get(id)?.events, events.slice(0, 4))
})

test('a removed session is gone once that was acknowledged, and may be begun anew', async () => {
  const { ledger, medium } = setup()
  const writer = medium.begin(header)
  await writer.append(events.slice(0, 6))
  await writer.close()
  const removed = medium.remove?.(id)
  assert.equal(ledger.current.get(id)?.removal, 'begun')
  await removed
  assert.deepEqual(ledger.current.get(id)?.removal, 'done')
  assert.deepEqual(ledger.current.get(id)?.events, [])
  await medium.begin(header).append(events.slice(0, 2))
  assert.deepEqual([ledger.current.get(id)?.removal, ledger.current.get(id)?.safe], ['none', 2])
})
