import { nameOf, subjectText } from './rule.ts'
import type { StoredRule } from './rules-in-force.ts'
import type { Circumstances } from './verdict.ts'

export function deniedByText(stored: StoredRule, part?: string): string {
  const what = part === undefined ? '' : `: \`${part}\``
  return `${nameOf(stored)} denies \`${subjectText(stored.rule)}\`${what}; do it another way or tell the user`
}

export function askedByText(stored: StoredRule, part?: string): string {
  const what = part === undefined ? '' : `: \`${part}\``
  return `${nameOf(stored)} asks for \`${subjectText(stored.rule)}\`${what}`
}

export function allowedByText(stored: StoredRule): string {
  return `${nameOf(stored)} allows \`${subjectText(stored.rule)}\``
}

/** Why no sandbox works. */
export function sandboxText({ sandbox }: Pick<Circumstances, 'sandbox'>): string {
  return `no sandbox works here (${sandbox.isReady ? '' : sandbox.reason})`
}
