import { randomUUID } from 'node:crypto'
import { dirname, join } from 'node:path'
import { errnoOf, writeAll } from './file-system.ts'
import type { FileSystem, OpenFile } from './file-system.ts'

const draftEnd = '.tmp'

/** Puts a file at `path`, whole and durable or not at all; what was there is replaced. */
export function publishFile(fs: FileSystem, path: string, ...parts: readonly Uint8Array[]): Promise<void> {
  return publishWith(fs, path, async file => {
    for (const part of parts) await writeAll(file, part)
  })
}

export interface PublishOptions {
  /** Runs before the file is put in place, which does not happen where it throws. `draft` is the whole file. */
  readonly before?: (draft: string) => Promise<void>
}

/** The same for a file that `write` makes piece by piece. */
export async function publishWith(
  fs: FileSystem,
  path: string,
  write: (file: OpenFile) => Promise<void>,
  { before }: PublishOptions = {},
): Promise<void> {
  const draft = `${path}.${randomUUID()}${draftEnd}`
  try {
    const file = await fs.open(draft, 'create')
    try {
      await write(file)
      await file.sync()
    } finally {
      await file.close()
    }
    await before?.(draft)
    await fs.rename(draft, path)
  } catch (error) {
    await fs.unlink(draft).catch(() => undefined)
    throw error
  }
  await fs.syncFolder(dirname(path))
}

/** So many folders above a session's may be the store's own: its project, the root, the home and what that lies in. */
const ownLevels = 4

/** Makes `folder` and the folders above it where they are missing, durably. */
export async function makeFolder(fs: FileSystem, folder: string): Promise<void> {
  await makeMissing(fs, folder)
  const above: string[] = []
  for (let at = folder; above.length < ownLevels && dirname(at) !== at; at = dirname(at))
    above.push(dirname(at))
  // Those that are there may be of a program that was killed before they were durable.
  await Promise.all(above.map(each => syncOwn(fs, each)))
}

async function makeMissing(fs: FileSystem, folder: string): Promise<void> {
  try {
    return await makeOne(fs, folder)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error
  }
  await makeMissing(fs, dirname(folder))
  // What is missing now is no folder that could be made, as below /proc.
  await makeOne(fs, folder)
}

async function makeOne(fs: FileSystem, folder: string): Promise<void> {
  await fs.mkdir(folder).catch((error: unknown) => {
    if (errnoOf(error) !== 'EEXIST') throw error
  })
}

/** A folder that must not even be read is none that was made here. */
async function syncOwn(fs: FileSystem, folder: string): Promise<void> {
  await fs.syncFolder(folder).catch((error: unknown) => {
    if (errnoOf(error) !== 'EACCES') throw error
  })
}

/**
 * Removes drafts that a crash left in `folder`. For whoever has the folder for itself; for others only those that
 * nobody can be writing any more, which were last written before `time`.
 */
export async function removeDrafts(fs: FileSystem, folder: string, time = Infinity): Promise<void> {
  const names = await fs.readdir(folder).catch(() => [])
  for (const name of names)
    if (isDraft(name)) await removeDraft(fs, join(folder, name), time).catch(() => undefined)
}

async function removeDraft(fs: FileSystem, path: string, time: number): Promise<void> {
  if (time < Infinity && (await fs.stat(path)).mtimeMs >= time) return
  await fs.unlink(path)
}

/** Whether a file of this name was never put in place. */
export function isDraft(name: string): boolean {
  return name.endsWith(draftEnd)
}
