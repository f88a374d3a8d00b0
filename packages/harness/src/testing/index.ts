/** What tests of plugins and apps are made with. */
export * from './given.ts'
export * from './mock-provider.ts'
export * from './harness.ts'
export * from './outline.ts'
export * from './log-problems.ts'
export * from './answer.ts'
