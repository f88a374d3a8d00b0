import { testStore } from '../../testing/contracts/store.ts'
import { testStoreAgainstMemory } from '../../testing/contracts/differential.ts'
import { setUp } from './set-up.ts'

testStore('store-sqlite', setUp)
testStoreAgainstMemory('store-sqlite', setUp)
testStoreAgainstMemory('store-sqlite without write-ahead log', t => setUp(t, { journalMode: 'delete' }), {
  runs: 5,
})
