/** What tests of plugins and apps are made with. */
export * from './mock-provider.ts'
export * from './harness.ts'
export * from './outline.ts'
