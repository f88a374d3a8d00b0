import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
  utimesSync,
  watch,
  writeSync,
} from 'node:fs'
import type { Stats } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { FileStat, FileSystem, OpenFile } from './files/file-system.ts'

const syncData = promisify(fdatasync)
const syncAll = promisify(fsync)

const { O_APPEND, O_CREAT, O_EXCL, O_NONBLOCK, O_RDONLY, O_RDWR } = constants

// Without O_NONBLOCK, opening a pipe that lies where a log should be would wait for its other end.
const flags = {
  read: O_RDONLY | (O_NONBLOCK ?? 0),
  append: O_RDWR | O_APPEND,
  create: O_RDWR | O_APPEND | O_CREAT | O_EXCL,
}

const smallFile = 64 * 1024

/**
 * The real file system. What touches the page cache alone is done at once, 2–10 µs against 80–200 through the thread
 * pool; syncs and whole files go through the pool, so that a slow disk stops nothing else.
 */
export const localFileSystem: FileSystem = {
  open: async (path, use) => openFile(openSync(path, flags[use], 0o600)),
  async read(path) {
    const stat = statSync(path)
    // Before it is opened: a pipe would wait for its other end, and a device may do anything.
    if (!stat.isFile()) throw noFile(path, stat)
    return stat.size <= smallFile ? readFileSync(path, { flag: flags.read }) : readFile(path)
  },
  stat: async path => toStat(statSync(path)),
  isLink: async path => lstatSync(path).isSymbolicLink(),
  readdir: async path => readdirSync(path),
  mkdir: async path => {
    mkdirSync(path, { mode: 0o700 })
  },
  rmdir: async path => rmdirSync(path),
  link: async (from, to) => linkSync(from, to),
  rename: async (from, to) => renameSync(from, to),
  unlink: async path => unlinkSync(path),
  setTime: async (path, mtimeMs) => utimesSync(path, mtimeMs / 1000, mtimeMs / 1000),
  async syncFolder(path) {
    // Windows cannot open folders; there the names are as durable as its file system makes them.
    if (process.platform === 'win32') return
    const fd = openSync(path, O_RDONLY)
    try {
      await syncAll(fd)
    } finally {
      closeSync(fd)
    }
  },
}

/** What the system itself says where a folder is read, and where a socket is opened. */
function noFile(path: string, stat: Stats): Error {
  const code = stat.isDirectory() ? 'EISDIR' : 'ENXIO'
  return Object.assign(new Error(`${code}: this is no file: ${path}`), { code })
}

/** Watches one folder; keeps no process alive. Where the system cannot, nothing is called. */
export function watchFolder(path: string, onChange: () => void): () => void {
  try {
    const watcher = watch(path, { persistent: false }, () => onChange())
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => {}
  }
}

function openFile(fd: number): OpenFile {
  return {
    stat: async () => toStat(fstatSync(fd)),
    async read(position, length, memory) {
      const bytes = memory ?? Buffer.allocUnsafe(length)
      return bytes.subarray(0, readSync(fd, bytes, 0, length, position))
    },
    write: async bytes => writeSync(fd, bytes),
    truncate: async size => ftruncateSync(fd, size),
    sync: () => syncData(fd),
    close: async () => closeSync(fd),
  }
}

function toStat(stat: Stats): FileStat {
  const kind = stat.isFile() ? 'file' : stat.isDirectory() ? 'folder' : 'other'
  return { kind, size: stat.size, mtimeMs: stat.mtimeMs, identity: `${stat.dev}:${stat.ino}` }
}
