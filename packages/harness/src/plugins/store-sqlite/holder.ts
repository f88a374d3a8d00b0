import { randomUUID } from 'node:crypto'
import type { SessionHolder } from '../../core/session/index.ts'
import { heldBy, parseOwner, toHolder, unknownHolder } from '../persistence/index.ts'
import type { LogOwner, Processes } from '../persistence/index.ts'

export interface StoreHost {
  readonly processes: Processes
  readonly now: () => number
}

/** A text for `sessions.holder` that nobody else has. */
export function newHolder({ processes, now }: StoreHost): string {
  const owner: LogOwner = { ...processes.self(), since: now(), nonce: randomUUID() }
  return JSON.stringify(owner)
}

/** Who that is, unless it is nobody or known to be dead. */
export function livingHolder(text: string | undefined, { processes }: StoreHost): SessionHolder | undefined {
  if (text === undefined) return undefined
  const owner = parseOwner(text)
  if (owner === undefined) return unknownHolder
  return processes.isDead(owner) ? undefined : toHolder(owner)
}

/** Throws SESSION_HELD where a log is another's, who is not known to be dead and is not `takeFrom`. */
export function assertFree(text: string | undefined, host: StoreHost, takeFrom?: SessionHolder): void {
  const holder = livingHolder(text, host)
  if (holder !== undefined && holder.nonce !== takeFrom?.nonce) throw heldBy(holder)
}
