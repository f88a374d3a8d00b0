import { join } from 'node:path'
import type { SessionEvent, SessionHeader, SessionId } from '@dsh/protocol'
import type { SessionHolder, SessionRow } from '../../core/session/index.ts'
import { damagedLog, notStored } from '../persistence/index.ts'
import type {
  LogWriter,
  Medium,
  MediumReport,
  RawLog,
  ReadOptions,
  RepairResult,
  ResumeOptions,
  StoredBatch,
  StoredLog,
  StreamOptions,
} from '../persistence/index.ts'
import { getArtifact } from './files/artifacts.ts'
import { streamLog, StreamMarks } from './read/batches.ts'
import { storeError } from './files/errors.ts'
import { unlessMissing } from './files/file-system.ts'
import { findFolder, revisionOf } from './files/find.ts'
import { readHeader } from './read/header.ts'
import { pathsIn, projectFolder, sessionFolder } from './files/layout.ts'
import { listRows } from './list.ts'
import { lockHolder } from './files/lock.ts'
import type { LockHost } from './files/lock.ts'
import { assertOwn, assertWritable, textsBeside, withLog } from './read/open-log.ts'
import type { LogPlace } from './read/open-log.ts'
import { readRawLog } from './read/raw.ts'
import { removeLog } from './remove.ts'
import { flippedText, isFlippedFrame, longestTried } from './repair/bits.ts'
import { repairLog } from './repair/repair.ts'
import { scanLog } from './read/scan.ts'
import type { ScannedLog } from './read/scan.ts'
import { sweepFolders } from './sweep.ts'
import { verifyLog } from './read/verify.ts'
import { JsonlWriter } from './writer.ts'
import type { LooseEnd, Resumption } from './writer.ts'

export interface StoreHost extends LockHost {
  /** Calls back when something in the folder may have changed, until the returned function is called. */
  readonly watch?: (folder: string, onChange: () => void) => () => void
}

/** A stored log, and where a writer goes on. */
interface ReadLog extends Resumption {
  readonly log: StoredLog
}

const mostFolders = 256

/** Logs as files: `<root>/<project>/<id>/log.jsonl.zst`. */
export class JsonlMedium implements Medium {
  readonly name = 'store-jsonl'
  readonly #root: string
  readonly #host: StoreHost
  readonly #folders = new Map<SessionId, string>()
  readonly #over = new AbortController()
  #sweeping: Promise<void> | undefined
  readonly #marks = new StreamMarks()

  constructor(root: string, host: StoreHost) {
    this.#root = root
    this.#host = host
  }

  locate(header: SessionHeader): string {
    return pathsIn(this.#folderFor(header)).log
  }

  async read(id: SessionId, options: ReadOptions = {}): Promise<StoredLog | undefined> {
    const place = await this.#find(id)
    return place && (await this.#read(place, options)).log
  }

  async *stream(id: SessionId, options?: StreamOptions): AsyncGenerator<StoredBatch> {
    yield* streamLog(this.#host.fs, await this.#findStored(id), this.#marks, options)
  }

  async readRaw(id: SessionId, signal?: AbortSignal): Promise<RawLog | undefined> {
    const place = await this.#find(id)
    return place && readRawLog(this.#host.fs, place, signal)
  }

  async revision(id: SessionId): Promise<string | undefined> {
    const place = await this.#findAgain(id)
    return place && revisionOf(await this.#host.fs.stat(pathsIn(place.folder).log))
  }

  async holder(id: SessionId): Promise<SessionHolder | undefined> {
    const place = await this.#findAgain(id)
    return place && lockHolder(pathsIn(place.folder).lock, this.#host)
  }

  list(signal?: AbortSignal): Promise<readonly SessionRow[]> {
    return listRows(this.#host, this.#root, signal)
  }

  begin(header: SessionHeader): LogWriter {
    return new JsonlWriter(this.#host, this.#root, this.#folderFor(header), header)
  }

  async resume(id: SessionId, options: ResumeOptions = {}): Promise<{ log: StoredLog; writer: LogWriter }> {
    const place = await this.#findStored(id)
    try {
      const header = await this.#writableHeader(place)
      const writer = new JsonlWriter(this.#host, this.#root, place.folder, header)
      const { log } = await writer.resumeAt(() => this.#readSound(place, options.signal), options.takeFrom)
      return { log, writer }
    } catch (error) {
      throw storeError(error, id, place.folder, 'continued')
    }
  }

  async artifact(id: SessionId, sha256: string): Promise<Uint8Array | undefined> {
    const place = await this.#findAgain(id)
    return place && getArtifact(this.#host.fs, pathsIn(place.folder).artifacts, sha256)
  }

  async remove(id: SessionId, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<boolean> {
    const place = await this.#find(id)
    options.signal?.throwIfAborted()
    return place !== undefined && removeLog(this.#host, place)
  }

  watch(id: SessionId, onChange: () => void): () => void {
    let stop: (() => void) | undefined
    let isOver = false
    const start = (place: LogPlace | undefined): void => {
      if (!isOver && place !== undefined) stop = this.#host.watch?.(place.folder, onChange)
    }
    // A hint alone: where nothing can be watched, whoever follows looks again by itself.
    void this.#find(id).then(start, () => undefined)
    return () => {
      isOver = true
      stop?.()
    }
  }

  async verify(id: SessionId, signal?: AbortSignal): Promise<MediumReport> {
    return verifyLog(this.#host.fs, await this.#findStored(id), signal)
  }

  async repair(id: SessionId): Promise<RepairResult> {
    return repairLog(this.#host, await this.#findStored(id))
  }

  async sweep(): Promise<void> {
    const sweeping = sweepFolders(this.#host, this.#root, this.#over.signal)
    this.#sweeping = sweeping
    await sweeping
  }

  /** A sweep that runs ends without leaving anything half made. */
  async close(): Promise<void> {
    this.#over.abort()
    await this.#sweeping
  }

  #folderFor(header: SessionHeader): string {
    return join(this.#root, projectFolder(header.cwd), sessionFolder(header.id))
  }

  async #find(id: SessionId): Promise<LogPlace | undefined> {
    const folder = await findFolder(this.#host.fs, this.#root, id)
    if (folder === undefined) this.#folders.delete(id)
    else this.#folders.set(id, folder)
    if (this.#folders.size > mostFolders) this.#folders.clear()
    return folder === undefined ? undefined : { id, folder }
  }

  /** Where it was found before, if it is still there; not every question is worth a look at all projects. */
  async #findAgain(id: SessionId): Promise<LogPlace | undefined> {
    const folder = this.#folders.get(id)
    const isThere =
      folder !== undefined && (await unlessMissing(this.#host.fs.stat(pathsIn(folder).log))) !== undefined
    return isThere ? { id, folder } : this.#find(id)
  }

  async #findStored(id: SessionId): Promise<LogPlace> {
    const place = await this.#find(id)
    if (place === undefined) throw notStored(id)
    return place
  }

  #read(place: LogPlace, { fromSeq, signal }: ReadOptions): Promise<ReadLog> {
    const { fs } = this.#host
    const { log: path, lock } = pathsIn(place.folder)
    return withLog(fs, place, async ({ file, revision }) => {
      const found = await scanLog(file, { fromSeq, signal, getText: textsBeside(fs, place) })
      if (typeof found === 'string') throw damagedLog(place.id, found, path)
      assertOwn(found.header, place)
      const holder = await lockHolder(lock, this.#host)
      const { header, toolStart, events, gaps, end, lastHash, length } = found
      const log = { header, toolStart, events, gaps, revision, holder, path }
      return { log, end, lastHash, length, looseEnd: looseEndOf(found) }
    })
  }

  /** For whoever has the lock. Rejects where the log must not be continued. */
  async #readSound(place: LogPlace, signal?: AbortSignal): Promise<ReadLog> {
    const read = await this.#read(place, { signal })
    const [gap] = read.log.gaps
    if (gap !== undefined) throw damagedLog(place.id, gap.reason, read.log.path)
    await this.#assertBrokenOff(place, read)
    return { ...read, log: { ...read.log, holder: undefined } }
  }

  /** Rejects where the loose end is a whole frame but for one bit: it is to be mended, not cut off. */
  async #assertBrokenOff(place: LogPlace, { looseEnd, lastHash, length, log }: ReadLog): Promise<void> {
    if (looseEnd === undefined) return
    const { tail, kept } = looseEnd
    const last = { hash: lastHash, next: length - kept.length }
    const isFlipped = await withLog(this.#host.fs, place, async ({ file }) =>
      isFlippedFrame(await file.read(tail.start, Math.min(tail.bytes, longestTried + 1)), last),
    )
    if (isFlipped) throw damagedLog(place.id, flippedText, log.path)
  }

  /** Rejects where the log is another's, or of a newer format. */
  async #writableHeader(place: LogPlace): Promise<SessionHeader> {
    const path = pathsIn(place.folder).log
    const stat = await this.#host.fs.stat(path)
    const found = stat.kind === 'file' ? await readHeader(this.#host.fs, path) : 'this is no file'
    if (typeof found === 'string') throw damagedLog(place.id, found, path)
    assertWritable(found.header, place)
    return found.header
  }
}

function looseEndOf({ tail, events }: ScannedLog): LooseEnd | undefined {
  if (tail === undefined) return undefined
  const kept: readonly SessionEvent[] = events.slice(events.length - tail.kept)
  return { tail, kept }
}
