import type { SessionHolder } from '../../core/session/index.ts'
import { isCount, isFields, parseJson } from '../../kernel/index.ts'
import { PersistenceError } from './errors.ts'
import type { ProcessIdentity } from './processes.ts'

/** Who may write a log, as a medium keeps it. */
export interface LogOwner extends ProcessIdentity, SessionHolder {}

/** Stands for an owner that cannot be read, and so cannot be known to be dead. */
export const unknownHolder: SessionHolder = { pid: 0, since: 0, host: '', nonce: '' }

/** The last moment that a date can name, in ms; the first is as far the other way. */
const lastTime = 8.64e15

/** Undefined for a text that names nobody. */
export function parseOwner(text: string): LogOwner | undefined {
  const value = parseJson(text)
  if (!isFields(value)) return undefined
  const texts = ['start', 'boot', 'host', 'space', 'nonce'].every(key => typeof value[key] === 'string')
  const { pid, since } = value
  return texts && isCount(pid) && isTime(since) ? (value as unknown as LogOwner) : undefined
}

/** A clock may stand anywhere; what it says must be read again, or the lock would be nobody's for ever. */
function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Math.abs(value as number) <= lastTime
}

export function toHolder({ pid, since, host, nonce }: LogOwner): SessionHolder {
  return { pid, since, host, nonce }
}

/** SESSION_HELD. `path` is where an owner stands that cannot be read. */
export function heldBy(holder: SessionHolder, path?: string): PersistenceError {
  const { pid, since } = holder
  const where = path === undefined ? '' : `: ${path}`
  const message =
    pid === 0
      ? `the session is open elsewhere, by whom cannot be read${where}`
      : `the session is open in another program: process ${pid} since ${new Date(since).toISOString()}`
  return new PersistenceError('SESSION_HELD', message, { holder, ...(pid === 0 ? { lock: path } : {}) })
}
