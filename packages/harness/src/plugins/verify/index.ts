/**
 * Checks a stored session from its bytes up to the requests that were made of it. Pure functions over the store; nothing
 * is mounted, and nothing is written.
 */
export { verifySession } from './session.ts'
export type { SessionReport, VerifyStore } from './session.ts'
