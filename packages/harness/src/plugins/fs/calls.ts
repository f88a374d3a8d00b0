import fs from 'node:fs'
import type { BigIntStats, Dirent } from 'node:fs'
import { promisify } from 'node:util'

// node:fs/promises takes four times as long for each of these.
export const chmod = promisify(fs.fchmod)
export const chown = promisify(fs.fchown)
export const close = promisify(fs.close)
export const fstat = promisify<number, fs.Stats>(fs.fstat)
export const link = promisify(fs.link)
export const mkdir = promisify<string, fs.MakeDirectoryOptions, unknown>(fs.mkdir)
export const open = promisify<string, string | number, number, number>(fs.open)
export const realpath = promisify<string, string>(fs.realpath.native)
export const rename = promisify(fs.rename)
export const sync = promisify(fs.fsync)
export const unlink = promisify(fs.unlink)

/** Where an open file lies now, as the system tells without touching a disk; undefined where it does not tell. */
export function pathOfOpen(file: number): string | undefined {
  try {
    return fs.readlinkSync(`/proc/self/fd/${file}`)
  } catch {
    return undefined
  }
}

const read = promisify(fs.read)
const write = promisify(fs.write)
const exactLstat = promisify(fs.lstat)
const exactStat = promisify(fs.stat)
const typedReaddir = promisify(fs.readdir)

export function lstat(path: string): Promise<BigIntStats> {
  return exactLstat(path, { bigint: true })
}

export function stat(path: string): Promise<BigIntStats> {
  return exactStat(path, { bigint: true })
}

export function readdir(path: string): Promise<Dirent[]> {
  return typedReaddir(path, { withFileTypes: true })
}

/** How many bytes came into `buffer` behind `offset`; 0 at the end. */
export async function readInto(file: number, buffer: Buffer, offset: number): Promise<number> {
  const { bytesRead } = await read(file, buffer, offset, buffer.length - offset, null)
  return bytesRead
}

export async function writeAll(file: number, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) {
    const { bytesWritten } = await write(file, bytes, offset, bytes.length - offset, null)
    offset += bytesWritten
  }
}
