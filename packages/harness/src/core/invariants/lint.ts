import type { SessionEvent } from '@dsh/protocol'
import { answeredCalls } from './answered-calls.ts'
import { enclosure } from './enclosure.ts'
import { LogReader } from './log-check.ts'
import type { LogCheck, LogViolation } from './log-check.ts'

/** What every log of a harness keeps. */
export const logChecks: readonly LogCheck[] = [enclosure, answeredCalls]

/** Everything that is wrong with the order of a log, from its first event on. */
export function lintLog(
  events: Iterable<SessionEvent>,
  checks: readonly LogCheck[] = logChecks,
): readonly LogViolation[] {
  const readers = checks.map(check => new LogReader(check))
  const violations: LogViolation[] = []
  for (const event of events) {
    for (const reader of readers) {
      const violation = reader.read(event)
      if (violation !== undefined) violations.push(violation)
    }
  }
  return violations
}
