import { basename, dirname } from 'node:path'
import type { FileStat, FileSystem, OpenFile } from '../../plugins/store-jsonl/index.ts'
import {
  asSynced,
  emptyDisk,
  emptyFile,
  emptyFolder,
  isDirty,
  rootInode,
  withContent,
  withEntry,
} from './disk.ts'
import type { Disk, FileNode, FolderNode, Inode } from './disk.ts'

/** A call that changed something, or made something safe. */
export interface TraceStep {
  readonly call: string
  readonly path: string
  /** The disk behind it. */
  readonly disk: Disk
  /** The file that a write or truncation was about. */
  readonly inode?: number
}

export interface ModelOptions {
  /** False forgets what was done, for long runs that only look at the present. Default true. */
  readonly keepsTrace?: boolean
}

/**
 * A file system in memory that knows what a power failure would leave of it. It behaves as Linux does, without rights,
 * and answers in one job each, so that a run takes the same course each time.
 */
export class ModelFileSystem implements FileSystem {
  /** Everything that changed the disk so far, in order. */
  readonly trace: TraceStep[] = []
  /** The disk that the trace begins with. */
  readonly start: Disk
  readonly #inodes: Map<number, Inode>
  #nextInode: number
  readonly #keepsTrace: boolean
  #tick = 0

  constructor(disk: Disk = emptyDisk, { keepsTrace = true }: ModelOptions = {}) {
    this.#keepsTrace = keepsTrace
    this.start = disk
    this.#inodes = new Map(disk)
    this.#nextInode = Math.max(...disk.keys()) + 1
    for (const { mtimeMs } of disk.values()) this.#tick = Math.max(this.#tick, mtimeMs)
  }

  get disk(): Disk {
    return this.#keepsTrace ? (this.trace.at(-1)?.disk ?? this.start) : new Map(this.#inodes)
  }

  async open(path: string, use: 'read' | 'append' | 'create'): Promise<OpenFile> {
    const found = this.#lookUp(path)
    if (use !== 'create') {
      const node = this.#node(this.#there(found, path), path)
      if (node.kind === 'folder' && use === 'append') throw errno('EISDIR', 'open', path)
      return this.#openFile(this.#there(found, path), path, use)
    }
    if (found !== undefined) throw errno('EEXIST', 'open', path)
    const inode = this.#add({ ...emptyFile, mtimeMs: ++this.#tick })
    this.#setEntry(path, inode)
    this.#note('create', path)
    return this.#openFile(inode, path, use)
  }

  async read(path: string): Promise<Buffer> {
    return Buffer.from(this.#file(this.#there(this.#lookUp(path), path), path).content)
  }

  async stat(path: string): Promise<FileStat> {
    return this.#statOf(this.#there(this.#lookUp(path), path), path)
  }

  async readdir(path: string): Promise<string[]> {
    return [...this.#folder(this.#there(this.#lookUp(path), path), path).entries.keys()]
  }

  async mkdir(path: string): Promise<void> {
    if (this.#lookUp(path) !== undefined) throw errno('EEXIST', 'mkdir', path)
    this.#setEntry(path, this.#add({ ...emptyFolder, mtimeMs: ++this.#tick }))
    this.#note('mkdir', path)
  }

  async rmdir(path: string): Promise<void> {
    const folder = this.#folder(this.#there(this.#lookUp(path), path), path)
    if (path === '/') throw errno('EBUSY', 'rmdir', path)
    if (folder.entries.size > 0) throw errno('ENOTEMPTY', 'rmdir', path)
    this.#setEntry(path, undefined)
    this.#note('rmdir', path)
  }

  async link(from: string, to: string): Promise<void> {
    const inode = this.#there(this.#lookUp(from), from)
    if (this.#lookUp(to) !== undefined) throw errno('EEXIST', 'link', to)
    if (this.#node(inode, from).kind === 'folder') throw errno('EPERM', 'link', from)
    this.#setEntry(to, inode)
    this.#note('link', to)
  }

  async rename(from: string, to: string): Promise<void> {
    const source = this.#lookUp(from)
    const replaced = this.#lookUp(to)
    const inode = this.#there(source, from)
    this.#checkRename(from, to, inode, replaced)
    if (replaced === inode) return
    this.#setEntry(to, inode)
    this.#setEntry(from, undefined)
    this.#note('rename', to)
  }

  async unlink(path: string): Promise<void> {
    const inode = this.#there(this.#lookUp(path), path)
    if (this.#node(inode, path).kind === 'folder') throw errno('EISDIR', 'unlink', path)
    this.#setEntry(path, undefined)
    this.#note('unlink', path)
  }

  async setTime(path: string, mtimeMs: number): Promise<void> {
    const inode = this.#there(this.#lookUp(path), path)
    this.#inodes.set(inode, { ...this.#node(inode, path), mtimeMs })
    this.#note('setTime', path)
  }

  async syncFolder(path: string): Promise<void> {
    const inode = this.#there(this.#lookUp(path), path)
    this.#folder(inode, path)
    this.#sync(inode, 'syncFolder', path)
  }

  #openFile(inode: number, path: string, use: 'read' | 'append' | 'create'): OpenFile {
    let isOpen = true
    const opened = (): number => {
      if (!isOpen) throw errno('EBADF', 'use', path)
      return inode
    }
    return {
      stat: async () => this.#statOf(opened(), path),
      read: async (position, length) => {
        const { content } = this.#file(opened(), path)
        return Buffer.from(content.subarray(position, position + length))
      },
      write: async bytes => {
        if (use === 'read') throw errno('EBADF', 'write', path)
        const { content } = this.#file(opened(), path)
        if (bytes.length > 0)
          this.#change(inode, Buffer.concat([content, bytes]), content.length, 'write', path)
        return bytes.length
      },
      truncate: async size => {
        if (use === 'read') throw errno('EINVAL', 'truncate', path)
        const { content } = this.#file(opened(), path)
        if (size === content.length) return
        const longer = Buffer.concat([content, Buffer.alloc(Math.max(0, size - content.length))])
        this.#change(inode, longer.subarray(0, size), Math.min(size, content.length), 'truncate', path)
      },
      sync: async () => this.#sync(opened(), 'sync', path),
      close: async () => {
        opened()
        isOpen = false
      },
    }
  }

  #change(inode: number, content: Buffer, from: number, call: string, path: string): void {
    const node = this.#file(inode, path)
    this.#inodes.set(inode, withContent(node, content, from, ++this.#tick))
    this.#note(call, path, inode)
  }

  #sync(inode: number, call: string, path: string): void {
    const node = this.#node(inode, path)
    if (!isDirty(node)) return
    this.#inodes.set(inode, asSynced(node))
    this.#note(call, path)
  }

  #checkRename(from: string, to: string, inode: number, replaced: number | undefined): void {
    const node = this.#node(inode, from)
    if (node.kind === 'folder' && to.startsWith(`${from}/`)) throw errno('EINVAL', 'rename', to)
    if (from.startsWith(`${to}/`)) throw errno('ENOTEMPTY', 'rename', to)
    if (replaced === undefined || replaced === inode) return
    const target = this.#node(replaced, to)
    if (node.kind === 'folder' && target.kind === 'file') throw errno('ENOTDIR', 'rename', to)
    if (node.kind === 'file' && target.kind === 'folder') throw errno('EISDIR', 'rename', to)
    if (target.kind === 'folder' && target.entries.size > 0) throw errno('ENOTEMPTY', 'rename', to)
  }

  #note(call: string, path: string, inode?: number): void {
    if (!this.#keepsTrace) return
    const disk: Disk = new Map(this.#inodes)
    this.trace.push(inode === undefined ? { call, path, disk } : { call, path, disk, inode })
  }

  #add(node: Inode): number {
    this.#inodes.set(this.#nextInode, node)
    return this.#nextInode++
  }

  /** Changes what a path stands for. The folder is there: `lookUp` has seen it. */
  #setEntry(path: string, inode: number | undefined): void {
    const parent = this.#there(this.#lookUp(dirname(path)), path)
    this.#inodes.set(parent, withEntry(this.#folder(parent, path), basename(path), inode, ++this.#tick))
  }

  /** Undefined where the last name alone is missing. */
  #lookUp(path: string): number | undefined {
    if (path === '/') return rootInode
    const parent = this.#lookUp(dirname(path))
    if (parent === undefined) throw errno('ENOENT', 'look up', path)
    return this.#folder(parent, path).entries.get(basename(path))
  }

  #there(inode: number | undefined, path: string): number {
    if (inode === undefined) throw errno('ENOENT', 'look up', path)
    return inode
  }

  #node(inode: number, path: string): Inode {
    const node = this.#inodes.get(inode)
    if (node === undefined) throw errno('EIO', 'look up', path)
    return node
  }

  #file(inode: number, path: string): FileNode {
    const node = this.#node(inode, path)
    if (node.kind === 'folder') throw errno('EISDIR', 'read', path)
    return node
  }

  #folder(inode: number, path: string): FolderNode {
    const node = this.#node(inode, path)
    if (node.kind === 'file') throw errno('ENOTDIR', 'look up', path)
    return node
  }

  #statOf(inode: number, path: string): FileStat {
    const node = this.#node(inode, path)
    const size = node.kind === 'file' ? node.content.length : 0
    return { kind: node.kind, size, mtimeMs: node.mtimeMs, identity: `model:${inode}` }
  }
}

function errno(code: string, call: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code })
}
