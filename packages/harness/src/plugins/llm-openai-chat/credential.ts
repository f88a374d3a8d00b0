import { checkKey } from '../http/index.ts'
import { wireFailure } from './failure.ts'

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
