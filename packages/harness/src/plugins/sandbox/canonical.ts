import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** The real path; where nothing is, that of the deepest folder that is there, and the rest. */
export function canonical(path: string): string {
  try {
    // The other one takes `..` away before it looks at links.
    return realpathSync.native(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(canonical(parent), basename(path))
  }
}
