/** What plugins that send requests have in common: the proxy of a target, and keys as they may go into a header. */
export { checkKey } from './key.ts'
export type { CheckedKey } from './key.ts'
export { proxyFor } from './proxy.ts'
export type { ReadEnv } from './proxy.ts'
