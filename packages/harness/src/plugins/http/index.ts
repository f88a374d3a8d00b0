/**
 * What plugins that send requests have in common: the proxy of a target, keys as they may go into a header, and the code
 * of what broke a connection.
 */
export { errorCode } from './error-code.ts'
export { checkKey } from './key.ts'
export type { CheckedKey } from './key.ts'
export { proxyFor } from './proxy.ts'
export type { ReadEnv } from './proxy.ts'
