import { symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolders } from '@dsh/harness/kernel'
import type { PointFile, RestorePoint, Rewind } from '@dsh/harness/plugins/rewind'

const atOnce = 4

/** Writes the files of a restore point into a folder that is made for them. Gives how many there are. */
export async function copyWorkspace(rewind: Rewind, point: RestorePoint, folder: string): Promise<number> {
  const files = await rewind.filesAt(point)
  makeFolders(folder)
  const waiting = [...files]
  const work = async (): Promise<void> => {
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop())
      await copy(rewind, point, { file, folder })
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return files.length
}

async function copy(
  rewind: Rewind,
  point: RestorePoint,
  { file, folder }: { readonly file: PointFile; readonly folder: string },
): Promise<void> {
  const bytes = (await rewind.read(point, file.path)) ?? new Uint8Array()
  const path = join(folder, file.path)
  makeFolders(dirname(path), 0o777)
  if (file.kind === 'link') await symlink(Buffer.from(bytes), path)
  else await writeFile(path, bytes, { mode: file.mode, flag: 'wx' })
}
