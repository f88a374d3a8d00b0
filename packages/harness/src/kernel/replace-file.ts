import { randomUUID } from 'node:crypto'
import { open, realpath, rename, stat, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface ReplaceFileOptions {
  /** Of the file from now on; by default it keeps the one it had, and a new file is its owner's alone. */
  readonly mode?: number
  /** What it holds can be made again: a power cut may take it, and nothing waits for the disk. */
  readonly isCache?: boolean
}

/**
 * Puts `content` at `path`: whoever reads it finds the old or the new, never half. It is durable when this resolves.
 *
 * A link stays one: the file that it leads to is replaced. Where this rejects before the new file is in place, the old one stays and no draft is left. A program that is killed
 * leaves its draft, `<path>.<uuid>.tmp`, which is in nobody's way.
 */
export async function replaceFile(
  named: string,
  content: string | Uint8Array,
  { mode, isCache = false }: ReplaceFileOptions = {},
): Promise<void> {
  const path = await realpath(named).catch(() => named)
  const draft = `${path}.${randomUUID()}.tmp`
  const kept = mode ?? (await modeOf(path))
  const file = await open(draft, 'wx', ownersAlone)
  try {
    await fill(file, content, kept)
    if (!isCache) await file.sync()
    await file.close()
    await rename(draft, path)
  } catch (error) {
    await file.close().catch(() => {})
    await unlink(draft).catch(() => {})
    throw error
  }
  if (!isCache) await syncFolder(dirname(path))
}

const ownersAlone = 0o600

async function fill(file: FileHandle, content: string | Uint8Array, mode: number): Promise<void> {
  await file.writeFile(content)
  // What is asked for when a file is made, the umask may take away.
  if (mode !== ownersAlone) await file.chmod(mode)
}

async function modeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ mode }) => mode & 0o7777,
    () => ownersAlone,
  )
}

/** Makes the names in a folder durable. Some systems cannot; there they are as durable as the system makes them. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path)
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP', 'EACCES', 'EPERM', 'EISDIR'].includes(codeOf(error))) throw error
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}
