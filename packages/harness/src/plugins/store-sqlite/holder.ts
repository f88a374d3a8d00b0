import { randomUUID } from 'node:crypto'
import type { SessionHolder } from '../../core/session/index.ts'
import { isCount, isFields, parseJson } from '../../kernel/index.ts'
import { PersistenceError } from '../persistence/index.ts'
import type { ProcessIdentity, Processes } from '../persistence/index.ts'

export interface StoreHost {
  readonly processes: Processes
  readonly now: () => number
}

/** What `sessions.holder` says of whoever may write a log. */
interface Owner extends ProcessIdentity, SessionHolder {}

const unknownHolder: SessionHolder = { pid: 0, since: 0, host: '', nonce: '' }

/** A text for `sessions.holder` that nobody else has. */
export function newHolder({ processes, now }: StoreHost): string {
  const owner: Owner = { ...processes.self(), since: now(), nonce: randomUUID() }
  return JSON.stringify(owner)
}

/** Who that is, unless it is nobody or known to be dead. */
export function livingHolder(text: string | undefined, { processes }: StoreHost): SessionHolder | undefined {
  if (text === undefined) return undefined
  const owner = parseOwner(text)
  if (owner === undefined) return unknownHolder
  if (processes.isDead(owner)) return undefined
  const { pid, since, host, nonce } = owner
  return { pid, since, host, nonce }
}

/** Throws SESSION_HELD where a log is another's, who is not known to be dead and is not `takeFrom`. */
export function assertFree(text: string | undefined, host: StoreHost, takeFrom?: SessionHolder): void {
  const holder = livingHolder(text, host)
  if (holder !== undefined && holder.nonce !== takeFrom?.nonce) throw heldBy(holder)
}

function heldBy(holder: SessionHolder): PersistenceError {
  const { pid, since } = holder
  const message =
    pid === 0
      ? 'the session is open elsewhere, by whom cannot be read'
      : `the session is open in another program: process ${pid} since ${new Date(since).toISOString()}`
  return new PersistenceError('SESSION_HELD', message, { holder })
}

function parseOwner(text: string): Owner | undefined {
  const value = parseJson(text)
  if (!isFields(value)) return undefined
  const texts = ['start', 'boot', 'host', 'space', 'nonce'].every(key => typeof value[key] === 'string')
  return texts && isCount(value['pid']) && isCount(value['since']) ? (value as unknown as Owner) : undefined
}
