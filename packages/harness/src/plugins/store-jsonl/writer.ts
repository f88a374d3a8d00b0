import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { join } from 'node:path'
import type { SessionHolder } from '../../core/session/index.ts'
import { assertNext, PersistenceError } from '../persistence/index.ts'
import type { LogWriter } from '../persistence/index.ts'
import { getArtifact, putArtifact } from './files/artifacts.ts'
import { encodeEvents } from './format/encode.ts'
import { storeError } from './files/errors.ts'
import { unlessMissing, writeAll } from './files/file-system.ts'
import type { OpenFile } from './files/file-system.ts'
import { findFolder, revisionOf } from './files/find.ts'
import { encodeFrame } from './format/frames.ts'
import { readHeader } from './read/header.ts'
import { pathsIn } from './files/layout.ts'
import { acquireLock } from './files/lock.ts'
import type { Lock, LockHost } from './files/lock.ts'
import { makeFolder, publishFile, removeDrafts } from './files/publish.ts'
import { chainHash, toHeaderLine } from './format/records.ts'
import type { TornTail } from './read/scan.ts'

/** An open log: what its next frame must continue. */
interface OpenLog {
  readonly file: OpenFile
  readonly identity: string
  size: number
  lastHash: string
  nextSeq: number
}

/** What a scan found behind the sound frames, for `mend`. */
export interface LooseEnd {
  readonly tail: TornTail
  /** Events that could be read from it. */
  readonly kept: readonly SessionEvent[]
}

/** Where a stored log ends. */
export interface Resumption {
  /** Bytes of the sound frames. */
  readonly end: number
  readonly lastHash: string
  /** Events, those of the loose end with them. */
  readonly length: number
  readonly looseEnd: LooseEnd | undefined
}

/** Writes one log file, alone. Starts without a lock; `resumeAt` or the first append takes it. */
export class JsonlWriter implements LogWriter {
  readonly #host: LockHost
  readonly #root: string
  readonly #folder: string
  readonly #header: SessionHeader
  #lock: Lock | undefined
  #log: OpenLog | undefined
  #looseEnd: LooseEnd | undefined
  /** The folder was seen to hold no log while the lock was ours, so one that is there now is ours. */
  #isFirst = false
  /** A failed write left bytes behind `size`. */
  #isDirty = false
  /** Where the log ended when it was given back sound. */
  #left: { readonly revision: string; readonly log: OpenLog } | undefined

  constructor(host: LockHost, root: string, folder: string, header: SessionHeader) {
    this.#host = host
    this.#root = root
    this.#folder = folder
    this.#header = header
  }

  /** Takes the lock of a stored log; `read` then tells where the log ends. */
  async resumeAt<T extends Resumption>(read: () => Promise<T>, takeFrom?: SessionHolder): Promise<T> {
    await this.#takeLock(takeFrom)
    try {
      const found = await read()
      const { file, identity } = await this.#open()
      const nextSeq = found.length - (found.looseEnd?.kept.length ?? 0)
      this.#log = { file, identity, size: found.end, lastHash: found.lastHash, nextSeq }
      this.#looseEnd = found.looseEnd
      return found
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async mend(): Promise<string | undefined> {
    const { fs, now } = this.#host
    const looseEnd = this.#looseEnd
    const log = this.#log
    if (looseEnd === undefined || log === undefined) return undefined
    await this.#checkLock()
    const { tail, kept } = looseEnd
    const paths = pathsIn(this.#folder)
    const copy = join(this.#folder, `torn-at-${tail.start}-${now()}.bin`)
    await publishFile(fs, copy, await log.file.read(tail.start, tail.bytes))
    if (kept.length === 0) {
      await log.file.truncate(tail.start)
      await log.file.sync()
    } else {
      // Never cut first: a crash in between would lose events that a reader may have been shown.
      const { bytes, lastHash } = await this.#encode(kept, log.lastHash)
      await publishFile(fs, paths.log, await log.file.read(0, tail.start), bytes)
      await log.file.close()
      const opened = await this.#open()
      const nextSeq = log.nextSeq + kept.length
      this.#log = { ...opened, size: tail.start + bytes.length, lastHash, nextSeq }
    }
    this.#looseEnd = undefined
    return `${tail.bytes} bytes at the end of the log were cut off (${tail.reason}); ${copy} keeps them`
  }

  async append(events: readonly SessionEvent[]): Promise<void> {
    if (events.length === 0) return
    try {
      if (this.#lock === undefined) await this.#begin()
      if (this.#looseEnd !== undefined) await this.mend()
      await (this.#log === undefined ? this.#publish(events) : this.#extend(events, this.#log))
    } catch (error) {
      throw storeError(error, this.#header.id, this.#folder)
    }
  }

  async putArtifact(
    bytes: Uint8Array,
    type: string,
  ): Promise<{ readonly sha256: string; readonly bytes: number }> {
    try {
      if (this.#lock === undefined) await this.#begin()
      return await this.#keep(bytes, type)
    } catch (error) {
      throw storeError(error, this.#header.id, this.#folder)
    }
  }

  getArtifact(sha256: string): Promise<Uint8Array | undefined> {
    return getArtifact(this.#host.fs, pathsIn(this.#folder).artifacts, sha256)
  }

  /** Where it rejects, it may be called again. */
  async close(): Promise<void> {
    const log = this.#log
    this.#log = undefined
    if (log !== undefined) this.#left = await this.#leave(log)
    await log?.file.close()
    await this.#lock?.release()
    this.#lock = undefined
  }

  async reopen(): Promise<boolean> {
    const left = this.#left
    if (left === undefined || this.#lock !== undefined) return false
    // Before the lock: there may be no folder any more to lay one in.
    if (!(await this.#isAsLeft(left.revision))) return false
    try {
      await this.#takeLock()
      const { file } = await this.#open()
      this.#log = { ...left.log, file }
      if (await this.#isAsLeft(left.revision)) return true
    } catch {
      // What is in the way is for `resume` to tell.
    }
    await this.close()
    return false
  }

  async #isAsLeft(revision: string): Promise<boolean> {
    const stat = await this.#host.fs.stat(pathsIn(this.#folder).log).catch(() => undefined)
    return stat !== undefined && revisionOf(stat) === revision
  }

  /** Undefined where the end of the file is not the end of what was written here. */
  async #leave(log: OpenLog): Promise<{ readonly revision: string; readonly log: OpenLog } | undefined> {
    if (this.#looseEnd !== undefined) return undefined
    const stat = await log.file.stat().catch(() => undefined)
    return stat?.size === log.size ? { revision: revisionOf(stat), log } : undefined
  }

  /** Publishes the header and the first events in one step. */
  async #publish(events: readonly SessionEvent[]): Promise<void> {
    const { fs } = this.#host
    const { log } = pathsIn(this.#folder)
    if (!this.#isFirst) await this.#checkFree()
    this.#isFirst = true
    assertNext(events, 0)
    const header = encodeFrame(toHeaderLine(this.#header))
    const { bytes, lastHash } = await this.#encode(events, chainHash(header))
    await publishFile(fs, log, header, bytes)
    const opened = await this.#open()
    this.#log = { ...opened, size: header.length + bytes.length, lastHash, nextSeq: events.length }
  }

  async #extend(events: readonly SessionEvent[], log: OpenLog): Promise<void> {
    assertNext(events, log.nextSeq)
    const { bytes, lastHash } = await this.#encode(events, log.lastHash)
    await this.#checkLock()
    await this.#checkUnchanged(log)
    try {
      await writeAll(log.file, bytes)
      await log.file.sync()
    } catch (error) {
      this.#isDirty = true
      await this.#rollBack(log, error)
      throw error
    }
    log.size += bytes.length
    log.lastHash = lastHash
    log.nextSeq += events.length
  }

  /** Another program's bytes must not be continued, even where it broke the lock. */
  async #checkUnchanged(log: OpenLog): Promise<void> {
    const { log: path } = pathsIn(this.#folder)
    const stat = await this.#host.fs.stat(path)
    if (stat.identity === log.identity && stat.size === log.size) return
    if (stat.identity === log.identity && this.#isDirty) return this.#rollBack(log, undefined)
    throw new PersistenceError(
      'STALE_APPEND',
      `another program changed the log of session "${this.#header.id}" (${stat.size} bytes where ${log.size} were left), so nothing more is written to it: ${path}`,
    )
  }

  async #rollBack(log: OpenLog, cause: unknown): Promise<void> {
    try {
      await log.file.truncate(log.size)
      await log.file.sync()
      this.#isDirty = false
    } catch (error) {
      if (cause === undefined) throw error
      throw new AggregateError([cause, error], 'a write failed, and so did taking it back')
    }
  }

  /** Looked at before too, so that the folder of another session is not touched. */
  async #begin(): Promise<void> {
    await this.#checkFree()
    await this.#takeLock()
  }

  async #takeLock(from?: SessionHolder): Promise<void> {
    if (this.#lock !== undefined) return
    const { lock, artifacts } = pathsIn(this.#folder)
    await makeFolder(this.#host.fs, this.#folder)
    this.#lock = await acquireLock(lock, this.#host, { from })
    await removeDrafts(this.#host.fs, this.#folder)
    await removeDrafts(this.#host.fs, artifacts)
  }

  /** A lock that was removed by hand is laid again; that nobody wrote meanwhile is seen from the file's size. */
  async #checkLock(): Promise<void> {
    try {
      await this.#lock?.check()
    } catch (error) {
      if (!(error instanceof PersistenceError) || error.code !== 'LOCK_LOST') throw error
      this.#lock = await acquireLock(pathsIn(this.#folder).lock, this.#host)
    }
  }

  async #checkFree(): Promise<void> {
    const { fs } = this.#host
    const { id } = this.#header
    const found = await findFolder(fs, this.#root, id)
    // The search passes over what it cannot look at; what this would write over must be seen to be missing.
    const own = await unlessMissing(fs.stat(pathsIn(this.#folder).log))
    const folder = found ?? (own && this.#folder)
    if (folder === undefined) return
    const { log } = pathsIn(folder)
    const line = await readHeader(fs, log).catch(() => 'unreadable')
    const owner = typeof line === 'string' ? 'a log that cannot be read' : `session "${line.header.id}"`
    throw new PersistenceError('SESSION_EXISTS', `session "${id}" cannot be begun: ${owner} is there: ${log}`)
  }

  async #open(): Promise<{ file: OpenFile; identity: string }> {
    const file = await this.#host.fs.open(pathsIn(this.#folder).log, 'append')
    return { file, identity: (await file.stat()).identity }
  }

  #encode(events: readonly SessionEvent[], prev: string): ReturnType<typeof encodeEvents> {
    return encodeEvents(events, prev, async bytes => (await this.#keep(bytes, 'text/plain')).sha256)
  }

  async #keep(bytes: Uint8Array, type: string): Promise<{ readonly sha256: string; readonly bytes: number }> {
    const { artifacts } = pathsIn(this.#folder)
    await makeFolder(this.#host.fs, artifacts)
    return putArtifact(this.#host.fs, artifacts, bytes, type)
  }
}
