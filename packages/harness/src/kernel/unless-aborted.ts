/** `promise`, or a rejection with the reason of `signal` at once where it aborts first. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', abort))
}
