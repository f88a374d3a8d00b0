/** The middle one; of an even number the mean of both. */
export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** CPU time of this process since `before` in µs, that of its garbage collector and compiler included. */
export function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** One run: whatever is not to be measured, then the part that is. */
export type Run = () => (() => unknown) | Promise<() => unknown>

export interface Repeats {
  /** How many runs count; default 7. */
  readonly runs?: number
  /** How many go before them, so that the code is compiled; default 2. */
  readonly warmups?: number
}

/** The median CPU time of a run's measured part, in µs. */
export async function cpuOf(run: Run, repeats?: Repeats): Promise<number> {
  return await medianRun(repeats, async () => {
    const measured = await run()
    collectGarbage()
    const before = process.cpuUsage()
    await measured()
    return cpuSince(before)
  })
}

/** The median wall time of a run's measured part, in ms. */
export async function wallOf(run: Run, repeats?: Repeats): Promise<number> {
  return await medianRun(repeats, async () => {
    const measured = await run()
    collectGarbage()
    const before = performance.now()
    await measured()
    return performance.now() - before
  })
}

async function medianRun(
  { runs = 7, warmups = 2 }: Repeats = {},
  once: () => Promise<number>,
): Promise<number> {
  const values: number[] = []
  for (let run = -warmups; run < runs; run++) {
    const value = await once()
    if (run >= 0) values.push(value)
  }
  return medianOf(values)
}

/** Bytes of live objects, after everything else is collected. */
export function liveBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('start it with --expose-gc, as run.ts does')
  globalThis.gc()
}
