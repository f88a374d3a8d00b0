import { usageError } from './errors.ts'

/** A whole number from 1 that an option gives; `undefined` where it is not given. */
export function countOption(
  name: string,
  value: string | boolean | undefined,
  fix: string,
): number | undefined {
  if (value === undefined) return undefined
  const count = Number(value)
  if (Number.isSafeInteger(count) && count >= 1) return count
  throw usageError('INVALID_NUMBER', `--${name} is a whole number from 1, found "${String(value)}"`, fix)
}
