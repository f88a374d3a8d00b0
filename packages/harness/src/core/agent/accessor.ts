import { Context } from '../../kernel/index.ts'
import { scopeChainOf } from '../scope/index.ts'
import type { Agent } from './agent.ts'

Object.defineProperty(Context.prototype, 'agent', {
  configurable: true,
  get(this: Context): Agent | undefined {
    return scopeChainOf(this.scope).find(isAgent)
  },
})

/** By form: an agent may come from another copy of this module, or from another factory. */
function isAgent(key: object): key is Agent {
  return 'inbox' in key && 'session' in key && typeof (key as Partial<Agent>).followup === 'function'
}
