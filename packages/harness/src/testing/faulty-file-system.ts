import type { FileSystem, OpenFile } from '../plugins/store-jsonl/index.ts'

type FolderCall = keyof FileSystem
type OpenFileCall = `file.${keyof OpenFile}`
export type FileCall = FolderCall | OpenFileCall

export interface Fault {
  /** The calls that count; every one where absent. */
  readonly call?: FileCall
  /** Which of them fails first, from 1. */
  readonly nth: number
  /** How many fail in a row; Infinity = the program is dead from there on. Default 1. */
  readonly times?: number
  /** The errno name; 'SHORT' makes a write take only half of its bytes. */
  readonly code: string
}

export interface FaultyFileSystem extends FileSystem {
  /** Every call that was made, in order, failed ones too. */
  readonly calls: readonly FileCall[]
  /** Lets the calls that these faults are about fail, in place of earlier ones; each counts for itself, from now on. */
  inject(...faults: readonly Fault[]): void
}

/** A file system whose calls fail on demand. A failing call does nothing. */
export function faultyFileSystem(inner: FileSystem): FaultyFileSystem {
  const calls: FileCall[] = []
  let faults: { readonly fault: Fault; count: number }[] = []

  const isFailing = (call: FileCall): Fault | undefined => {
    calls.push(call)
    let failing: Fault | undefined
    for (const entry of faults) {
      const { fault } = entry
      if (fault.call !== undefined && fault.call !== call) continue
      entry.count += 1
      const { nth, times = 1 } = fault
      if (entry.count >= nth && entry.count < nth + times) failing ??= fault
    }
    return failing
  }
  const run = async <T>(call: FileCall, action: () => Promise<T>): Promise<T> => {
    const failing = isFailing(call)
    if (failing !== undefined) throw errnoError(call, failing.code)
    return action()
  }
  const wrapFile = (file: OpenFile): OpenFile => ({
    stat: () => run('file.stat', () => file.stat()),
    read: (position, length) => run('file.read', () => file.read(position, length)),
    async write(bytes) {
      const failing = isFailing('file.write')
      if (failing === undefined) return file.write(bytes)
      if (failing.code !== 'SHORT') throw errnoError('file.write', failing.code)
      return file.write(bytes.subarray(0, Math.ceil(bytes.length / 2)))
    },
    truncate: size => run('file.truncate', () => file.truncate(size)),
    sync: () => run('file.sync', () => file.sync()),
    // A descriptor that stays open would outlive the test.
    close: () => file.close(),
  })

  const { isLink, setTime } = inner
  return {
    calls,
    inject(...next) {
      faults = next.map(fault => ({ fault, count: 0 }))
    },
    open: async (path, use) => wrapFile(await run('open', () => inner.open(path, use))),
    read: path => run('read', () => inner.read(path)),
    stat: path => run('stat', () => inner.stat(path)),
    readdir: path => run('readdir', () => inner.readdir(path)),
    mkdir: path => run('mkdir', () => inner.mkdir(path)),
    rmdir: path => run('rmdir', () => inner.rmdir(path)),
    link: (from, to) => run('link', () => inner.link(from, to)),
    rename: (from, to) => run('rename', () => inner.rename(from, to)),
    unlink: path => run('unlink', () => inner.unlink(path)),
    ...(isLink && { isLink: (path: string) => run('isLink', () => isLink(path)) }),
    ...(setTime && {
      setTime: (path: string, mtimeMs: number) => run('setTime', () => setTime(path, mtimeMs)),
    }),
    syncFolder: path => run('syncFolder', () => inner.syncFolder(path)),
  }
}

function errnoError(call: FileCall, code: string): Error {
  return Object.assign(new Error(`${code}: injected into ${call}`), { code })
}
