import type { FoldDefinition } from '../../core/session/index.ts'
import type { PermissionRule } from './events.ts'
import { isRule } from './rule.ts'

/** What the person allowed for the rest of the session. Forks have it too. */
export const sessionGrants: FoldDefinition<
  readonly PermissionRule[],
  'approval/decided' | 'approval/forgotten'
> = {
  name: 'grants of the session',
  types: ['approval/decided', 'approval/forgotten'],
  init: () => [],
  apply(state, event) {
    if (event.type === 'approval/forgotten') return state.length === 0 ? state : []
    const { outcome, scope, rules = [] } = event.data
    if (outcome !== 'allowed-once' || scope !== 'session') return state
    // A later version may say more of a rule than is understood here.
    const known = rules.filter(rule => isRule(rule) && rule.effect === 'allow')
    return known.length === 0 ? state : [...state, ...known]
  },
}
