import { testStoreAgainstMemory } from './contracts/differential.ts'
import { testStore } from './contracts/store.ts'
import { MemoryStore } from './memory-store.ts'

testStore('memory', () => new MemoryStore())
testStoreAgainstMemory('memory', () => new MemoryStore())
