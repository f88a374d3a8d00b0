/** What tests of plugins and apps are made with. */
export * from './given.ts'
export * from './mock-provider.ts'
export * from './harness.ts'
export * from './outline.ts'
export * from './answer.ts'
export * from './faulty-file-system.ts'
export { testStore } from './contracts/store.ts'
export type { StorePlace } from './contracts/store.ts'
