import { WebError } from './errors.ts'

export interface DeadlineTimes {
  /** Of the whole. */
  readonly timeoutMs: number
  /** Between two signs of life of a body. */
  readonly idleTimeoutMs: number
}

export interface Deadline {
  /** Aborts with WEB_FETCH_TIMEOUT, or with the reason of the signal it follows. */
  readonly signal: AbortSignal
  /** From the first call on, silence counts. */
  alive(): void
  end(): void
}

export function startDeadline(upstream: AbortSignal, times: DeadlineTimes, host: string): Deadline {
  const { timeoutMs, idleTimeoutMs } = times
  const controller = new AbortController()
  const expire = (what: string): void =>
    controller.abort(new WebError('WEB_FETCH_TIMEOUT', `${host} ${what}`))
  const follow = (): void => controller.abort(upstream.reason)
  const whole = setTimeout(expire, timeoutMs, `did not answer in full within ${timeoutMs} ms`)
  let idle: NodeJS.Timeout | undefined
  if (upstream.aborted) follow()
  else upstream.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    alive() {
      clearTimeout(idle)
      idle = setTimeout(expire, idleTimeoutMs, `sent nothing for ${idleTimeoutMs} ms`)
    },
    end() {
      clearTimeout(whole)
      clearTimeout(idle)
      upstream.removeEventListener('abort', follow)
    },
  }
}
