import { wireFailure } from './failure.ts'

/** A key as it may go into a header. */
export type CheckedKey =
  | { readonly key: string; readonly problem?: undefined }
  | { readonly key?: undefined; readonly problem: string }

/** Trims white space around; anything but printable ASCII inside is a slip of copying. Never repeats the key. */
export function checkKey(text: string): CheckedKey {
  const key = text.trim()
  if (key === '') return { problem: 'it is empty' }
  const at = key.search(/[^\x21-\x7e]/)
  if (at === -1) return { key }
  return {
    problem: `character ${at + 1} of ${key.length} is not printable ASCII, which no key holds; copy it again`,
  }
}

export interface KeyRequest {
  readonly provider: string
  /** Where the key was looked for, in words. */
  readonly source: string
  readonly text: string | undefined
  readonly optional: boolean
  readonly keysURL?: string | undefined
}

/** The key to send, or undefined where none is needed. Throws MISSING_CREDENTIAL or INVALID_CREDENTIAL. */
export function usableKey({ provider, source, text, optional, keysURL }: KeyRequest): string | undefined {
  if (text === undefined || text.trim() === '') {
    if (optional) return undefined
    const where = keysURL === undefined ? '' : `; keys are made at ${keysURL}`
    throw wireFailure('MISSING_CREDENTIAL', `no key for ${provider}: set ${source}${where}`)
  }
  const { key, problem } = checkKey(text)
  if (key !== undefined) return key
  throw wireFailure('INVALID_CREDENTIAL', `the key of ${provider} in ${source} cannot be used: ${problem}`)
}
