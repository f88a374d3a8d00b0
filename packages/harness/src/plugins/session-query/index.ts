/** Finds sessions and what was said in them: `ctx.sessionQuery` over the live sessions, the store and an index. */
export * from './errors.ts'
export * from './service.ts'
