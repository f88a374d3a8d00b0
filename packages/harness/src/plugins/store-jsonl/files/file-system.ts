/** What the store needs of a file system. Failures reject with an error that has the errno name as `code`. */
export interface FileSystem {
  /** 'read' and 'append' need the file to be there; 'create' makes it and rejects with EEXIST where one is. */
  open(path: string, use: 'read' | 'append' | 'create'): Promise<OpenFile>
  /** The whole file. Rejects at once with EISDIR or ENXIO, see `isNoFile`, where something else is there. */
  read(path: string): Promise<Buffer>
  stat(path: string): Promise<FileStat>
  /** Whether the name itself is a link, wherever it leads. Absent where there are no links. */
  isLink?(path: string): Promise<boolean>
  /** Names in a folder, in no order. */
  readdir(path: string): Promise<string[]>
  /** Makes one folder, for its owner only. */
  mkdir(path: string): Promise<void>
  rmdir(path: string): Promise<void>
  /** Rejects with EEXIST where `to` is there. */
  link(from: string, to: string): Promise<void>
  /** Replaces `to`, atomically. */
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  /** Says when a file was written last. Logs are never packed anew where this is absent. */
  setTime?(path: string, mtimeMs: number): Promise<void>
  /** Makes durable which names are in a folder. */
  syncFolder(path: string): Promise<void>
}

export interface FileStat {
  readonly kind: 'file' | 'folder' | 'other'
  readonly size: number
  readonly mtimeMs: number
  /** The same as long as it is the same file, whatever its name. */
  readonly identity: string
}

export interface OpenFile {
  stat(): Promise<FileStat>
  /** Up to `length` bytes from `position`; fewer at the end of the file. They may stand in `memory`, if that is given. */
  read(position: number, length: number, memory?: Buffer): Promise<Buffer>
  /** Appends; gives how many bytes went in, which may be fewer than all. */
  write(bytes: Uint8Array): Promise<number>
  truncate(size: number): Promise<void>
  /** Resolves once everything that was written is on the disk. */
  sync(): Promise<void>
  close(): Promise<void>
}

export type ReadableFile = Pick<OpenFile, 'stat' | 'read'>

/** The errno name of a failed call, or undefined. */
export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/** Whether a link failed because the file system has none, or has no more of them for the file. */
export function hasNoLinks(error: unknown): boolean {
  return linklessCodes.has(errnoOf(error))
}

const linklessCodes: ReadonlySet<string | undefined> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
])

/** Whether what was to be read is there and is no file: a folder, a pipe, a link that leads in a circle. */
export function isNoFile(error: unknown): boolean {
  return noFileCodes.has(errnoOf(error))
}

const noFileCodes: ReadonlySet<string | undefined> = new Set(['EISDIR', 'ENXIO', 'ELOOP'])

export async function writeAll(file: OpenFile, bytes: Uint8Array): Promise<void> {
  let written = 0
  while (written < bytes.length) {
    const count = await file.write(written === 0 ? bytes : bytes.subarray(written))
    if (count <= 0) throw Object.assign(new Error('a write took nothing'), { code: 'EIO' })
    written += count
  }
}

/** The value, or undefined where the path is not there. */
export async function unlessMissing<T>(value: Promise<T>): Promise<T | undefined> {
  try {
    return await value
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined
    throw error
  }
}
