import type { PreToolDecision } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { unjudgedText } from './judge.ts'
import type { Judge } from './judge.ts'

/**
 * Puts each call to `judge` before it runs. A guard says no again where a listener let go through what was refused, or
 * kept the call from being judged at all.
 */
export function enforce(ctx: Context, judge: Judge): void {
  const verdicts = new WeakMap<symbol, PreToolDecision>()
  ctx.on(
    'tools/pre-execute',
    async (execution, next) => {
      const own = await judge.decide(execution)
      verdicts.set(execution.token, own)
      if (own.kind === 'deny') return own
      const others = await next()
      return own.kind === 'ask' && others.kind === 'allow' ? own : others
    },
    { prepend: true },
  )
  ctx.tools.guard(execution => {
    // The mode may be another by now: an answer can take long.
    const refusal = judge.refusal(execution)
    if (refusal !== undefined || !judge.isLimited(execution)) return refusal
    const verdict = verdicts.get(execution.token)
    if (verdict === undefined) return unjudgedText
    return verdict.kind === 'deny' ? verdict.reason : undefined
  })
}
