import { AsyncLocalStorage } from 'node:async_hooks'
import { isPromise } from './effect.ts'
import type { Fiber } from './fiber.ts'

/** Marks code that runs inside a set-up or disposal, so that it cannot wait for its own end. */
export interface Run {
  readonly fiber: Fiber
  readonly outer: Run | undefined
  open: boolean
}

const runs = new AsyncLocalStorage<Run | undefined>()

export function openRun(fiber: Fiber): Run {
  // Closed ones are left out: a plugin that mounts the next from its timers would keep every one before it.
  let outer = runs.getStore()
  while (outer?.open === false) outer = outer.outer
  return { fiber, outer, open: true }
}

export function runIn<T>(run: Run, work: () => T): T {
  return runs.run(run, work)
}

/** `work` in a run of its own, which is over when `work` is. */
export function runWithin<T>(fiber: Fiber, work: () => T): T {
  const run = openRun(fiber)
  const close = (): void => void (run.open = false)
  try {
    const result: unknown = runIn(run, work)
    if (isPromise(result)) result.then(close, close)
    else close()
    return result as T
  } catch (error) {
    close()
    throw error
  }
}

/** Whether the running code is part of an unfinished set-up or disposal of `fiber`, or of a plugin below it. */
export function isInside(fiber: Fiber): boolean {
  for (let run = runs.getStore(); run !== undefined; run = run.outer) {
    if (run.open && run.fiber.isWithin(fiber)) return true
  }
  return false
}

/**
 * The plugin whose set-up or disposal began the running code, however long ago: also in a timer or promise it left
 * behind, and in a host's handler of what nobody caught. Undefined for code that began elsewhere, as in a listener.
 */
export function currentFiber(): Fiber | undefined {
  return runs.getStore()?.fiber
}
