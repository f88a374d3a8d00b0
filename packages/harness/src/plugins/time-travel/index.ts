/**
 * What a session was at any event: its requests, rebuilt from the log alone, where two of them part, and the moment
 * itself. Pure functions of a session; nothing is mounted.
 */
export { bytesOf, piecesOf } from './canonical.ts'
export type { RequestPart, RequestParts, RequestPiece } from './canonical.ts'
export { compareRequests, firstDifference, harmlessChanges } from './compare.ts'
export type { CacheBreak, FirstDifference, RequestComparison } from './compare.ts'
export { momentAt } from './moment.ts'
export type { Moment } from './moment.ts'
export { historyAt, rebuildRequest, rebuildRequests } from './rebuild.ts'
export type { History, RebuiltRequest } from './rebuild.ts'
export { placeOf, requestsOf } from './requests.ts'
export type { LoggedRequest, RequestOutcome } from './requests.ts'
