/** The arithmetic mean; NaN for no values. */
export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The middle value, or the mean of the two middle ones; NaN for no values. */
export function median(values) {
  const sorted = [...values].sort()
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : mean(sorted.slice(middle - 1, middle + 1))
}

/** The distance between the smallest and the largest value. */
export function range(values) {
  return Math.max(...values) - Math.min(...values)
}
