import type { TestContext } from 'node:test'
import type { StorePlace } from './store.ts'
export function testStoredSessions(
  _n: string,
  _s: (t: TestContext) => StorePlace | Promise<StorePlace>,
): void {}
