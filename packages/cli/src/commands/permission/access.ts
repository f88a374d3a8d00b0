import { nearest } from '@dsh/harness/kernel'
import { widerAccesses } from '@dsh/harness/tools'
import type { WiderAccess } from '@dsh/harness/tools'
import { usageError } from '../../errors.ts'

/** Throws UNKNOWN_ACCESS for a word that names none; `fix` is what to type instead. */
export function accessOf(word: string | boolean, fix: string): WiderAccess {
  const known = widerAccesses.find(each => each === word)
  if (known !== undefined) return known
  const near = nearest(String(word), widerAccesses)
  throw usageError('UNKNOWN_ACCESS', `there is no access "${String(word)}"${near}`, fix)
}
