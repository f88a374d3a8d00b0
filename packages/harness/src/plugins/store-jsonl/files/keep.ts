import { dirname, join } from 'node:path'
import { errnoOf, hasNoLinks, unlessMissing, writeAll } from './file-system.ts'
import type { FileSystem } from './file-system.ts'
import { publishWith } from './publish.ts'
import { FileWindow } from './window.ts'

const copiedAtOnce = 1024 * 1024

/**
 * Gives the file at `path` a second name in its folder, durably: `name`, or with a number where that is another
 * file's. Gives the path.
 */
export async function keepBeside(
  fs: FileSystem,
  path: string,
  name: (nth: string) => string,
): Promise<string> {
  for (let nth = 1; ; nth += 1) {
    const kept = join(dirname(path), name(nth === 1 ? '' : `-${nth}`))
    if (!(await tryKeep(fs, path, kept))) continue
    await fs.syncFolder(dirname(path))
    return kept
  }
}

/** False where another file has that name. */
async function tryKeep(fs: FileSystem, path: string, kept: string): Promise<boolean> {
  const there = await unlessMissing(fs.stat(kept))
  if (there !== undefined) return there.identity === (await fs.stat(path)).identity
  try {
    await fs.link(path, kept)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    if (!hasNoLinks(error)) throw error
    await copyFile(fs, path, kept)
  }
  return true
}

/** A whole and durable copy, or none. */
export async function copyFile(fs: FileSystem, from: string, to: string): Promise<void> {
  const file = await fs.open(from, 'read')
  try {
    const window = new FileWindow(file, (await file.stat()).size)
    await publishWith(fs, to, async copy => {
      for (let at = 0; at < window.size; at += copiedAtOnce) {
        const bytes = await window.from(at, copiedAtOnce)
        await writeAll(copy, bytes.subarray(0, copiedAtOnce))
      }
    })
  } finally {
    await file.close()
  }
}
