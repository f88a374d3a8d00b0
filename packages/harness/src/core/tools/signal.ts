export interface FusedSignal {
  readonly signal: AbortSignal
  /** Takes the listeners off both sources. */
  release(): void
}

/** Aborts with the reason of whichever source aborts first. */
export function fuseSignals(first: AbortSignal, second: AbortSignal): FusedSignal {
  if (first === second || second.aborted) return { signal: second, release: () => {} }
  if (first.aborted) return { signal: first, release: () => {} }
  const controller = new AbortController()
  const onFirst = (): void => controller.abort(first.reason)
  const onSecond = (): void => controller.abort(second.reason)
  first.addEventListener('abort', onFirst, { once: true })
  second.addEventListener('abort', onSecond, { once: true })
  return {
    signal: controller.signal,
    release: () => {
      first.removeEventListener('abort', onFirst)
      second.removeEventListener('abort', onSecond)
    },
  }
}
