/** A record whose values are not known yet. */
export type Fields = Readonly<Record<string, unknown>>

/** Lists are none. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Empty texts are none. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** A whole number above 0. */
export function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

/** A whole number from 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
