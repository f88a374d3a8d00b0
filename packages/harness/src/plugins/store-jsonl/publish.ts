import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { errnoOf, writeAll } from './file-system.ts'
import type { FileSystem } from './file-system.ts'

const draftEnd = '.tmp'

/** Puts a file at `path`, whole and durable or not at all; what was there is replaced. */
export async function publishFile(
  fs: FileSystem,
  path: string,
  ...parts: readonly Uint8Array[]
): Promise<void> {
  const draft = `${path}.${randomUUID()}${draftEnd}`
  try {
    const file = await fs.open(draft, 'create')
    try {
      for (const part of parts) await writeAll(file, part)
      await file.sync()
    } finally {
      await file.close()
    }
    await fs.rename(draft, path)
  } catch (error) {
    await fs.unlink(draft).catch(() => undefined)
    throw error
  }
  await fs.syncFolder(dirname(path))
}

/** Makes `folder` and the folders above it where they are missing, durably. */
export async function makeFolder(fs: FileSystem, folder: string): Promise<void> {
  try {
    await fs.mkdir(folder)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return
    if (errnoOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error
    await makeFolder(fs, dirname(folder))
    return makeFolder(fs, folder)
  }
  await fs.syncFolder(dirname(folder))
}

/** Removes drafts that a crash left in `folder`. Only for whoever has the folder for itself. */
export async function removeDrafts(fs: FileSystem, folder: string): Promise<void> {
  const names = await fs.readdir(folder).catch(() => [])
  for (const name of names)
    if (name.endsWith(draftEnd)) await fs.unlink(join(folder, name)).catch(() => undefined)
}
