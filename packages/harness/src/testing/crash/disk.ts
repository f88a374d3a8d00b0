/** What a disk holds now, and what of it a power failure would leave. Values: nothing in one ever changes. */
export type Disk = ReadonlyMap<number, Inode>

export type Inode = FileNode | FolderNode

export interface FileNode {
  readonly kind: 'file'
  readonly content: Buffer
  /** What was there when the file was last synced. */
  readonly synced: Buffer
  /** Bytes before it have not changed since. */
  readonly intact: number
  readonly mtimeMs: number
}

export interface FolderNode {
  readonly kind: 'folder'
  readonly entries: Entries
  /** What was there when the folder was last synced. */
  readonly synced: Entries
  /** What each name has stood for since, in order; undefined = nothing. */
  readonly unsynced: ReadonlyMap<string, readonly (number | undefined)[]>
  readonly mtimeMs: number
}

type Entries = ReadonlyMap<string, number>

export const rootInode = 1

export const emptyFolder: FolderNode = {
  kind: 'folder',
  entries: new Map(),
  synced: new Map(),
  unsynced: new Map(),
  mtimeMs: 0,
}

export const emptyFile: FileNode = {
  kind: 'file',
  content: Buffer.alloc(0),
  synced: Buffer.alloc(0),
  intact: 0,
  mtimeMs: 0,
}

export const emptyDisk: Disk = new Map([[rootInode, emptyFolder]])

export function isDirty(node: Inode): boolean {
  return node.kind === 'file' ? node.content !== node.synced : node.unsynced.size > 0
}

export function withContent(node: FileNode, content: Buffer, from: number, mtimeMs: number): FileNode {
  return { ...node, content, intact: Math.min(node.intact, from), mtimeMs }
}

export function withEntry(
  folder: FolderNode,
  name: string,
  inode: number | undefined,
  mtimeMs: number,
): FolderNode {
  const entries = new Map(folder.entries)
  if (inode === undefined) entries.delete(name)
  else entries.set(name, inode)
  const unsynced = new Map(folder.unsynced)
  unsynced.set(name, [...(unsynced.get(name) ?? []), inode])
  return { ...folder, entries, unsynced, mtimeMs }
}

/** What was written to the inode so far is safe. */
export function asSynced(node: Inode): Inode {
  if (node.kind === 'file') return { ...node, synced: node.content, intact: node.content.length }
  return { ...node, synced: node.entries, unsynced: new Map() }
}

/** Every file that can be reached, by its path. */
export function filesOf(disk: Disk): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>()
  const visit = (inode: number, path: string): void => {
    const node = disk.get(inode)
    if (node?.kind === 'file') files.set(path, node.content)
    if (node?.kind === 'folder')
      for (const [name, child] of node.entries) visit(child, path === '/' ? `/${name}` : `${path}/${name}`)
  }
  visit(rootInode, '/')
  return files
}

/** The disk with another content in a file, as if it had always been there. */
export function withFile(disk: Disk, path: string, change: (content: Buffer) => Buffer): Disk {
  let inode = rootInode
  for (const name of path.split('/').slice(1)) {
    const folder = disk.get(inode)
    inode = (folder?.kind === 'folder' ? folder.entries.get(name) : undefined) ?? 0
  }
  const file = disk.get(inode)
  if (file?.kind !== 'file') throw new RangeError(`there is no file ${path}`)
  const content = change(file.content)
  return new Map(disk).set(inode, asSynced({ ...file, content }))
}
