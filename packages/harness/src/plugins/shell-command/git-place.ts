import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Whether git, started in `folder`, takes the configuration of a repository that lies where repositories lie: a folder
 * `.git` here or above. Anything else may have been put there by who wants git to run something.
 */
export function isPlainRepository(folder: string): boolean {
  const gitFolder = join(folder, '.git')
  if (kindOf(gitFolder) === 'folder')
    return (
      kindOf(join(gitFolder, 'commondir')) === undefined &&
      kindOf(join(folder, '.gitmodules')) === undefined &&
      !namesOthers(gitFolder)
    )
  if (kindOf(gitFolder) !== undefined || isBare(folder)) return false
  const above = dirname(folder)
  return above !== folder && isPlainRepository(above)
}

const gitlinkMode = Buffer.from([0, 0, 0xe0, 0])
const longestIndex = 64 * 1024 * 1024

/**
 * Whether an index may hold a commit of another repository, declared or not: git looks into that one by its own
 * configuration. The mode is looked for wherever it stands, so that at worst one is asked for nothing.
 */
function namesOthers(gitFolder: string): boolean {
  try {
    const names = readdirSync(gitFolder).filter(name => name === 'index' || name.startsWith('sharedindex.'))
    return names.some(name => {
      const path = join(gitFolder, name)
      const stats = lstatSync(path)
      return !stats.isFile() || stats.size > longestIndex || readFileSync(path).includes(gitlinkMode)
    })
  } catch {
    return true
  }
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
