import { randomInt } from 'node:crypto'
import { SessionId } from '@dsh/protocol'

const digits = '0123456789abcdefghjkmnpqrstvwxyz'
/** 2026-01-01, in milliseconds. */
const epoch = 1_767_225_600_000

/**
 * Ten signs without i, l, o and u: seven count the 1/32 seconds since 2026, so that ids sort by time and have the same
 * length until 2060; three are random, so that two processes of the same moment do not meet.
 */
export function newSessionId(now: number = Date.now(), random: number = randomInt(32 ** 3)): SessionId {
  return SessionId(encoded(Math.max(0, Math.floor(((now - epoch) * 32) / 1000)), 7) + encoded(random, 3))
}

function encoded(value: number, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest = Math.floor(rest / 32))
    text = digits.charAt(rest % 32) + text
  return text
}
