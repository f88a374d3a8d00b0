import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolders } from '../../kernel/index.ts'
import { PersistenceError } from '../persistence/index.ts'
import { canSyncFolders, currentUser } from './local.ts'
import { checkVersion } from './schema.ts'

/** Where the database is kept in memory, and nothing is durable. */
export const memoryPath = ':memory:'

const headerBytes = 100
const magic = 'SQLite format 3\0'

/**
 * Makes the folder and the database where they are missing, both for their owner only. `build` fills an empty file; only
 * a whole database gets the name, and never in the place of another.
 */
export function preparePlace(path: string, build: (draft: string) => void): void {
  const folder = dirname(path)
  makeFolder(folder)
  checkFolder(folder)
  if (identityOf(path) !== undefined) {
    // SQLite would only say that it cannot open it.
    for (const needed of [folder, path]) accessSync(needed, constants.W_OK)
    return
  }
  const draft = `${path}.${randomUUID()}.tmp`
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    build(draft)
    publish(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
  syncFolder(folder)
}

/**
 * Throws where others could read or replace the database, or where the file is no database of ours; nothing is opened
 * that is not. False where there is nothing in it yet.
 */
export function checkPlace(path: string): boolean {
  checkFolder(dirname(path))
  const stat = lstatSync(path)
  if (stat.isSymbolicLink()) throw refused(path, 'it is a symbolic link')
  if (!stat.isFile()) throw refused(path, 'it is no file')
  checkOwner(stat, 0o077, path, `chmod 600 ${path}`)
  if (stat.size === 0) return false
  checkHeader(path)
  return true
}

/** Another for each file that was ever at `path`; undefined where none is. */
export function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}

function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    // Some file systems have no links.
    renameSync(draft, path)
  }
}

function makeFolder(folder: string): void {
  const first = makeFolders(folder)
  if (first === undefined) return
  for (let made = folder; made !== dirname(first); made = dirname(made)) syncFolder(dirname(made))
}

function checkFolder(folder: string): void {
  const stat = lstatSync(folder)
  if (stat.isSymbolicLink()) throw refused(folder, 'it is a symbolic link', 'name the folder itself')
  if (!stat.isDirectory()) throw refused(folder, 'it is no folder')
  checkOwner(stat, 0o022, folder, `chmod go-w ${folder}`)
}

function checkOwner({ uid, mode }: Stats, forbidden: number, path: string, mend: string): void {
  const self = currentUser()
  if (self === undefined) return
  if (uid !== self && uid !== 0) throw refused(path, 'it belongs to another user')
  if ((mode & forbidden) !== 0) throw refused(path, 'other users have rights to it', mend)
}

function checkHeader(path: string): void {
  const header = Buffer.alloc(headerBytes)
  const fd = openSync(path, 'r')
  try {
    readSync(fd, header, 0, headerBytes, 0)
  } finally {
    closeSync(fd)
  }
  if (header.toString('latin1', 0, magic.length) !== magic) throw refused(path, 'it is no SQLite database')
  checkVersion(header.readUInt32BE(68), header.readUInt32BE(60), path)
}

function syncFolder(folder: string): void {
  if (!canSyncFolders) return
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function refused(path: string, reason: string, mend?: string): PersistenceError {
  const way = mend === undefined ? '' : `; ${mend}`
  return new PersistenceError('STORE_FAILED', `sessions are not kept in ${path}: ${reason}${way}`)
}
