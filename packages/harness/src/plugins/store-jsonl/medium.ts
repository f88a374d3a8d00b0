import { join } from 'node:path'
import { sessionFormatVersion } from '@dsh/protocol'
import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import { newerFormatText, PersistenceError } from '../persistence/index.ts'
import type {
  LogWriter,
  Medium,
  MediumRow,
  ReadOptions,
  ResumeOptions,
  StoredLog,
} from '../persistence/index.ts'
import { getArtifact } from './artifacts.ts'
import { findFolder, revisionOf } from './find.ts'
import { readHeader } from './header.ts'
import { pathsIn, projectFolder, sessionFolder } from './layout.ts'
import { listRows } from './list.ts'
import { lockHolder } from './lock.ts'
import type { LockHost } from './lock.ts'
import { resolveTexts } from './resolve.ts'
import { scanLog } from './scan.ts'
import type { ScannedLog } from './scan.ts'
import { sweepFolders } from './sweep.ts'
import { JsonlWriter, storeError } from './writer.ts'
import type { LooseEnd, Resumption } from './writer.ts'

/** A stored log, and where a writer goes on. */
interface ReadLog extends Resumption {
  readonly log: StoredLog
}

/** Logs as files: `<root>/<project>/<id>/log.jsonl.zst`. */
export class JsonlMedium implements Medium {
  readonly name = 'store-jsonl'
  readonly #root: string
  readonly #host: LockHost

  constructor(root: string, host: LockHost) {
    this.#root = root
    this.#host = host
  }

  locate(header: SessionHeader): string {
    return pathsIn(this.#folderFor(header)).log
  }

  async read(id: SessionId, options: ReadOptions = {}): Promise<StoredLog | undefined> {
    const folder = await this.#find(id)
    if (folder === undefined) return undefined
    return (await this.#read(id, folder, options)).log
  }

  async revision(id: SessionId): Promise<string | undefined> {
    const folder = await this.#find(id)
    return folder === undefined ? undefined : revisionOf(await this.#host.fs.stat(pathsIn(folder).log))
  }

  list(signal?: AbortSignal): Promise<readonly MediumRow[]> {
    return listRows(this.#host, this.#root, signal)
  }

  begin(header: SessionHeader): LogWriter {
    return new JsonlWriter(this.#host, this.#root, this.#folderFor(header), header)
  }

  async resume(id: SessionId, options: ResumeOptions = {}): Promise<{ log: StoredLog; writer: LogWriter }> {
    const folder = await this.#find(id)
    if (folder === undefined) throw notStored(id)
    try {
      const header = await this.#header(id, pathsIn(folder).log)
      const writer = new JsonlWriter(this.#host, this.#root, folder, header)
      const { log } = await writer.resumeAt(
        () => this.#readSound(id, folder, options.signal),
        options.takeFrom,
      )
      return { log, writer }
    } catch (error) {
      throw storeError(error, id, folder, 'continued')
    }
  }

  async artifact(id: SessionId, sha256: string): Promise<Uint8Array | undefined> {
    const folder = await this.#find(id)
    return folder === undefined ? undefined : getArtifact(this.#host.fs, pathsIn(folder).artifacts, sha256)
  }

  sweep(): Promise<void> {
    return sweepFolders(this.#host, this.#root)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #folderFor(header: SessionHeader): string {
    return join(this.#root, projectFolder(header.cwd), sessionFolder(header.id))
  }

  #find(id: SessionId): Promise<string | undefined> {
    return findFolder(this.#host.fs, this.#root, id)
  }

  async #read(id: SessionId, folder: string, { fromSeq = 0, signal }: ReadOptions): Promise<ReadLog> {
    const { fs } = this.#host
    const paths = pathsIn(folder)
    const { bytes, revision } = await this.#bytes(id, paths.log)
    signal?.throwIfAborted()
    const scanned = await scanLog(bytes, { fromSeq, signal })
    if (typeof scanned === 'string') throw damaged(id, scanned, paths.log)
    assertOwnId(scanned.header, id, paths.log)
    const found = await resolveTexts(scanned, sha256 => getArtifact(fs, paths.artifacts, sha256))
    const holder = await lockHolder(paths.lock, this.#host)
    const { header, toolStart, events, gaps, end, lastHash, length } = found
    const log = { header, toolStart, events, gaps, revision, holder, path: paths.log }
    return { log, end, lastHash, length, looseEnd: looseEndOf(found) }
  }

  /** For whoever has the lock. Rejects where the log must not be continued. */
  async #readSound(id: SessionId, folder: string, signal?: AbortSignal): Promise<ReadLog> {
    const read = await this.#read(id, folder, { signal })
    const [gap] = read.log.gaps
    if (gap !== undefined) throw damaged(id, gap.reason, read.log.path)
    return { ...read, log: { ...read.log, holder: undefined } }
  }

  /** Rejects where the log is another's, or of a newer format. */
  async #header(id: SessionId, path: string): Promise<SessionHeader> {
    const stat = await this.#host.fs.stat(path)
    const found = stat.kind === 'file' ? await readHeader(this.#host.fs, path) : 'this is no file'
    if (typeof found === 'string') throw damaged(id, found, path)
    const { header } = found
    assertOwnId(header, id, path)
    if (header.version > sessionFormatVersion)
      throw new PersistenceError('SESSION_FORMAT_NEWER', newerFormatText(header.version, path))
    return header
  }

  async #bytes(id: SessionId, path: string): Promise<{ bytes: Buffer; revision: string }> {
    try {
      const stat = await this.#host.fs.stat(path)
      if (stat.kind !== 'file') throw damaged(id, 'this is no file', path)
      return { bytes: await this.#host.fs.read(path), revision: revisionOf(stat) }
    } catch (error) {
      throw storeError(error, id, path, 'read')
    }
  }
}

function looseEndOf({ tail, events }: ScannedLog): LooseEnd | undefined {
  if (tail === undefined) return undefined
  const kept: readonly SessionEvent[] = events.slice(events.length - tail.kept)
  return { tail, kept }
}

/** A copied folder must not let one session be written into another's log. */
function assertOwnId(header: SessionHeader, id: SessionId, path: string): void {
  if (header.id === id) return
  throw new PersistenceError(
    'SESSION_DAMAGED',
    `the folder of session "${id}" holds the log of session "${header.id}": ${path}`,
  )
}

function damaged(id: SessionId, reason: string, path: string): PersistenceError {
  return new PersistenceError('SESSION_DAMAGED', `the log of session "${id}" is damaged: ${reason}: ${path}`)
}

function notStored(id: SessionId): PersistenceError {
  return new PersistenceError('SESSION_NOT_FOUND', `session "${id}" is not stored`)
}
