import { randomUUID } from 'node:crypto'
import type { LlmFailure } from '@dsh/protocol'
import type { ArgsOf } from '../../kernel/index.ts'
import type { RequestErrorAction } from '../../core/agent/index.ts'
import { retryDelayMs } from '../../core/llm/index.ts'
import type { RetryPolicy } from '../../core/llm/index.ts'
import { chainKey, policyKeyOf, retryChains } from './log.ts'

type RequestError = ArgsOf<'agent/request-error'>[0]
type Next = () => Promise<RequestErrorAction>

export interface RecoveryRim {
  /** Aborts when the plugin unloads. */
  readonly unloading: AbortSignal
  /** Told what a policy below failed with where the request is tried again all the same. */
  report(error: unknown): void
}

/** Answers one failed request: waits and asks for another attempt, or leaves it to whoever comes next. */
export async function recover(
  error: RequestError,
  next: Next,
  rim: RecoveryRim,
): Promise<RequestErrorAction> {
  const { agent, turn, step, provider, failure, retryPolicy: policy, signal } = error
  if (policy === undefined || rim.unloading.aborted) return await next()
  if (policy.mode === 'always') {
    const action = await askOthers(next, rim)
    if (action?.kind === 'retry') return action
  }
  const stop = AbortSignal.any([signal, rim.unloading])
  if (stop.aborted) return undefined
  const { session } = agent
  const { mode } = policy
  const policyKey = policyKeyOf(policy)
  const chain = session.fold(retryChains).get(chainKey(provider, policyKey))
  const retry = (chain?.retry ?? 0) + 1
  const delayMs = delayOf(policy, retry, failure)
  if (delayMs === undefined) return await next()
  const place = { retryId: chain?.retryId ?? randomUUID(), turn, step, retry }
  const budget = mode === 'normal' ? { maxRetries: policy.maxRetries } : {}
  session.append('llm/retry', { ...place, provider, mode, policyKey, ...budget, delayMs, failure })
  if (!(await wait(delayMs, stop))) return undefined
  session.append('llm/retry-started', place)
  return { kind: 'retry' }
}

/** What the policies below say; one that fails must not end a route that is tried for ever. */
async function askOthers(next: Next, rim: RecoveryRim): Promise<RequestErrorAction> {
  try {
    return await next()
  } catch (error) {
    rim.report(error)
    return undefined
  }
}

/** Undefined where the policy gives up. A wait that the provider names is kept to, unless it is longer than allowed. */
function delayOf(policy: RetryPolicy, retry: number, failure: LlmFailure): number | undefined {
  const { providerRetryAfterMs: named, code } = failure
  const isNormal = policy.mode === 'normal'
  if (isNormal && (!policy.retryableCodes.includes(code) || retry > policy.maxRetries)) return undefined
  if (named !== undefined && named <= policy.maxDelayMs) return Math.ceil(named)
  if (named !== undefined && isNormal) return undefined
  return retryDelayMs(policy, retry, Math.random())
}

/** Resolves to whether the time passed; false as soon as `stop` aborts. */
function wait(ms: number, stop: AbortSignal): Promise<boolean> {
  return new Promise(resolve => {
    const cancel = (): void => {
      clearTimeout(timer)
      resolve(false)
    }
    const timer = setTimeout(() => {
      stop.removeEventListener('abort', cancel)
      resolve(true)
    }, ms)
    stop.addEventListener('abort', cancel, { once: true })
  })
}
