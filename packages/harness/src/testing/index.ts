/** What tests of plugins and apps are made with. */
export * from './mock-provider.ts'
