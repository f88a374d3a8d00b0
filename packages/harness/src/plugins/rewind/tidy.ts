import { spawn } from 'node:child_process'
import { readdir, readFile, stat, unlink, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { environment } from './git.ts'
import type { GitSurroundings } from './git.ts'
import type { Repository } from './repository.ts'
import { dropStatIndex } from './stat-index.ts'

const dayMs = 24 * 60 * 60 * 1000
/** Loose objects, as git counts them: those of one of 256 folders. */
const looseInOneFolder = 27

export interface TidyOptions {
  readonly keepDays: number
  readonly around: GitSurroundings
  readonly now: number
}

/**
 * Once a day: drops the points of sessions that took none for long, and lets git pack the rest. The packing is a
 * process of its own that outlives this one; what it removes is unreachable and a day old.
 */
export async function tidy(repository: Repository, { keepDays, around, now }: TidyOptions): Promise<void> {
  const stamp = join(repository.folder, 'HEAD')
  if ((await stat(stamp)).mtimeMs > now - dayMs) return
  await utimes(stamp, new Date(now), new Date(now))
  await removeLeftovers(repository.folder, { since: Infinity, now })
  await unlinkOld(join(repository.folder, 'packed-refs.lock'), now - dayMs)
  const dropped = await dropOldRefs(repository, now - keepDays * dayMs)
  const loose = await readdir(join(repository.folder, 'objects', '17')).catch(() => [])
  if (dropped === 0 && loose.length < looseInOneFolder) return
  // It may build on what is removed now.
  if (dropped > 0) await dropStatIndex(repository.folder)
  pack(repository.folder, around)
}

/** How many sessions had nothing newer. */
async function dropOldRefs({ git }: Repository, before: number): Promise<number> {
  const output = await git.run(['for-each-ref', '--format=%(committerdate:unix) %(refname)', 'refs/dsh/'])
  const refs = output
    .toString('utf8')
    .split('\n')
    .filter(Boolean)
    .map(line => line.split(' '))
  const old = refs.filter(([seconds]) => Number(seconds) * 1000 < before)
  if (old.length > 0)
    await git.run(['update-ref', '--stdin'], { input: old.map(([, ref]) => `delete ${ref}\n`).join('') })
  return old.length
}

function pack(folder: string, { path }: GitSurroundings): void {
  const child = spawn('git', ['gc', '--quiet', '--prune=1.day.ago'], {
    cwd: folder,
    env: environment(folder, path),
    stdio: 'ignore',
    detached: true,
  })
  child.on('error', () => {})
  child.unref()
}

const hourMs = 60 * 60 * 1000
/** File systems round times. */
const roundedMs = 100

/**
 * Removes what a git that was killed, or had no room, left of its packs and reports: all from `since` on, and what
 * is so old that nobody writes it any more. Another program whose pack goes with them makes it again.
 */
export async function removeLeftovers(
  folder: string,
  { since, now }: { readonly since: number; readonly now: number },
): Promise<void> {
  const packs = join(folder, 'objects', 'pack')
  const found = await Promise.all([namesIn(packs, 'tmp_'), namesIn(folder, 'fast_import_crash_')])
  for (const path of found.flat()) {
    const time = (await stat(path).catch(() => undefined))?.mtimeMs ?? now
    if (time >= since - roundedMs || time < now - hourMs) await unlink(path).catch(() => {})
  }
}

async function namesIn(folder: string, beginning: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => [])
  return names.filter(name => name.startsWith(beginning)).map(name => join(folder, name))
}

async function unlinkOld(path: string, before: number): Promise<void> {
  const stats = await stat(path).catch(() => undefined)
  if (stats !== undefined && stats.mtimeMs < before) await unlink(path).catch(() => {})
}

/** Of a ref that only one program writes: a lock was left by one that was killed, and what names no commit is damage. */
export async function clearRef({ folder }: Repository, ref: string): Promise<void> {
  const path = join(folder, ref)
  await unlink(`${path}.lock`).catch(() => {})
  const text = await readFile(path, 'latin1').catch(() => undefined)
  if (text !== undefined && !/^[0-9a-f]{40,64}\n?$/.test(text)) await unlink(path)
}
