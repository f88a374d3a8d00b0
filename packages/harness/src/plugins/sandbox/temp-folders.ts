import { chmodSync, existsSync, lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from './env.ts'
import type { Machine } from './env.ts'

/** Removes folders of this user's programs that ended without it. What cannot be removed keeps nobody from working. */
export function sweepTempFolders(parent: string, { uid }: Pick<Machine, 'uid'>): void {
  const names = existsSync(parent) ? readdirSync(parent) : []
  for (const name of names) {
    const pid = /^(?:dsh-)?(\d+)-[0-9a-f]{12}$/.exec(name)?.[1]
    if (pid === undefined || isAlive(Number(pid))) continue
    const path = join(parent, name)
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isDirectory() === true && (uid === undefined || stats.uid === uid)) removeFolder(path)
  }
}

/** With folders in it that say that nothing of theirs is to be removed, as those of modules of Go do. */
export function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    if (!isRefused(error)) throw error
    openFolders(path)
    removeWhatCanBe(path)
  }
}

function removeWhatCanBe(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    if (!isRefused(error)) throw error
  }
}

/** Follows no link. */
function openFolders(path: string): void {
  try {
    chmodSync(path, 0o700)
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) openFolders(join(path, entry.name))
  } catch (error) {
    if (!isRefused(error)) throw error
  }
}

/** Also by what is still written into. */
function isRefused(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return ['EACCES', 'EPERM', 'EBUSY', 'ENOTEMPTY', 'ENOENT'].includes(code)
}
