/** Registrations and events for one part of the tree: any object is a scope, an agent is its own. */
export * from './announce.ts'
export * from './chain.ts'
export * from './entries.ts'
export * from './layers.ts'
export * from './scope.ts'
export * from './target.ts'
