import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** The real path; where nothing is, that of the deepest folder that is there, and the rest. */
export async function canonical(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(await canonical(parent), basename(path))
  }
}
