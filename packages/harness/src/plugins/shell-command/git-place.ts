import { lstatSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Whether git, started in `folder`, takes the configuration of a repository that lies where repositories lie: a folder
 * `.git` here or above. Anything else may have been put there by who wants git to run something.
 */
export function isPlainRepository(folder: string): boolean {
  const gitFolder = join(folder, '.git')
  if (kindOf(gitFolder) === 'folder')
    return (
      kindOf(join(gitFolder, 'commondir')) === undefined && kindOf(join(folder, '.gitmodules')) === undefined
    )
  if (kindOf(gitFolder) !== undefined || isBare(folder)) return false
  const above = dirname(folder)
  return above !== folder && isPlainRepository(above)
}

/** What git takes for a repository without a working tree. */
function isBare(folder: string): boolean {
  return kindOf(join(folder, 'HEAD')) !== undefined && kindOf(join(folder, 'objects')) !== undefined
}

function kindOf(path: string): 'folder' | 'other' | undefined {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return undefined
    return stats.isDirectory() ? 'folder' : 'other'
  } catch {
    // Out of reach: nobody can say what lies there.
    return 'other'
  }
}
