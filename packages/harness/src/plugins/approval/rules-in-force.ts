import { resolve } from 'node:path'
import { isWithin } from '../../kernel/index.ts'
import type { PermissionRule } from './events.ts'

/** A rule and where it stands. */
export interface StoredRule {
  readonly rule: PermissionRule
  /** Of a rule of the file; absent for one that counts for a session. */
  readonly id?: string
}

/** Whether a rule counts for sessions that work in `folder`. Without one only what counts everywhere does. */
export function isInForce({ folder: own }: PermissionRule, folder: string | undefined): boolean {
  return own === undefined || (folder !== undefined && isWithin(resolve(own), resolve(folder)))
}

export type RulesOfKind<Kind extends PermissionRule['kind']> = StoredRule & {
  readonly rule: Extract<PermissionRule, { kind: Kind }>
}

/** Those of one kind and one effect. */
export function rulesOf<Kind extends PermissionRule['kind']>(
  rules: readonly StoredRule[],
  kind: Kind,
  effect: PermissionRule['effect'],
): readonly RulesOfKind<Kind>[] {
  return rules.filter(
    (stored): stored is RulesOfKind<Kind> => stored.rule.kind === kind && stored.rule.effect === effect,
  )
}
