/** Node fires a longer timer after 1 ms instead. */
export const MAX_TIMER_DELAY_MS = 2_147_483_647

/** Waits for `work`, but no longer than `ms`; whether it ended in time. Rejects with what it rejects with in time. */
export async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(() => resolve(false), ms)
  try {
    return await Promise.race([work.then(() => true), promise])
  } finally {
    clearTimeout(timer)
  }
}
