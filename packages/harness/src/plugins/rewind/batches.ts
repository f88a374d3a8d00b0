const mostItems = 64
const mostBytes = 32 * 1024 * 1024

/** In order, in runs whose content may be in memory at once. */
export function* batches<T>(items: readonly T[], sizeOf: (item: T) => number): Iterable<readonly T[]> {
  let batch: T[] = []
  let bytes = 0
  for (const item of items) {
    const size = sizeOf(item)
    if (batch.length > 0 && (batch.length === mostItems || bytes + size > mostBytes)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(item)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
