import type { SessionEvent } from '@dsh/protocol'
import { packChunks } from '../../core/session/index.ts'
import { parseJson } from '../../kernel/index.ts'
import { nextSeqOf } from './read/chain.ts'
import type { FileStat, OpenFile } from './files/file-system.ts'
import { revisionOf } from './files/find.ts'
import { encodeFrame, frameAt, nextMagic } from './format/frames.ts'
import { pathsIn } from './files/layout.ts'
import { acquireLock, lockHolder } from './files/lock.ts'
import type { Lock, LockHost } from './files/lock.ts'
import { publishWith } from './files/publish.ts'
import { toChainLine } from './format/records.ts'
import { scanHeader } from './read/scan.ts'
import { walkLog } from './format/walk.ts'
import type { FramePiece } from './format/walk.ts'
import { FileWindow } from './files/window.ts'
import { LogDraft } from './format/write-log.ts'

/** A log that was written a moment ago may go on. */
const coldMs = 3_600_000
const smallestLog = 256 * 1024
const sampleBytes = 64 * 1024
const mostFrames = 1000
/** Frames up to this size are stored as they are, so that packing them makes less than half of them. */
const largestRaw = 4096
const largestSmall = 16 * 1024
/** In UTF-16 units; about 60 KB of a file. */
const packedText = 256 * 1024

interface RepackOptions {
  readonly signal?: AbortSignal
}

/** Packs the log in `folder` where it is cold and that makes it much smaller. Gives whether it did. */
export async function repackWhereWorthIt(
  host: LockHost,
  folder: string,
  options: RepackOptions,
): Promise<boolean> {
  const { log, lock } = pathsIn(folder)
  const file = await host.fs.open(log, 'read')
  try {
    if (!(await isWorthIt(file, await file.stat(), host.now()))) return false
  } finally {
    await file.close()
  }
  return (await lockHolder(lock, host)) === undefined && (await repackLog(host, folder, options))
}

/**
 * Makes few large frames of the many small ones that a log is written in: the same lines in the same order, with runs
 * of chunks as rows. The new file is whole and durable before it takes the place of the old one, and the lock is held
 * only for that moment, so that nobody who wants to go on with the session waits. False, and nothing is changed, where
 * the log is not sound or was written meanwhile.
 */
export async function repackLog(
  host: LockHost,
  folder: string,
  { signal }: RepackOptions = {},
): Promise<boolean> {
  const file = await host.fs.open(pathsIn(folder).log, 'read')
  try {
    await new Repack(host, { folder, file, stat: await file.stat(), signal }).run()
    return true
  } catch (error) {
    if (error === notSound) return false
    throw error
  } finally {
    await file.close()
  }
}

/** Judged from a piece in the middle. */
async function isWorthIt(file: OpenFile, { kind, size, mtimeMs }: FileStat, now: number): Promise<boolean> {
  if (kind !== 'file' || size < smallestLog || now - mtimeMs < coldMs) return false
  const bytes = await file.read(Math.floor(size / 2), sampleBytes)
  const start = nextMagic(bytes, 0)
  let end = start
  let count = 0
  for (let frame = frameAt(bytes, end); frame.kind === 'data'; frame = frameAt(bytes, end)) {
    end = frame.end
    count += 1
  }
  if (start < 0 || count === 0) return false
  const average = (end - start) / count
  return average <= largestRaw || (average <= largestSmall && size / average > mostFrames)
}

/** Damage is for people to look at, a torn end for the next owner, and a log that grew is warm. */
const notSound = Symbol('not sound')

class Repack {
  readonly #host: LockHost
  readonly #folder: string
  readonly #file: OpenFile
  readonly #stat: FileStat
  readonly #signal: AbortSignal | undefined
  #lines: string[] = []
  #length = 0
  #firstSeq = 0
  #count = 0

  constructor(
    host: LockHost,
    work: { folder: string; file: OpenFile; stat: FileStat; signal: AbortSignal | undefined },
  ) {
    this.#host = host
    this.#folder = work.folder
    this.#file = work.file
    this.#stat = work.stat
    this.#signal = work.signal
  }

  async run(): Promise<void> {
    const { log, lock: path } = pathsIn(this.#folder)
    const { fs } = this.#host
    let lock: Lock | undefined
    const before = async (draft: string): Promise<void> => {
      // Lists are in the order of these times.
      await fs.setTime?.(draft, this.#stat.mtimeMs)
      lock = await acquireLock(path, this.#host)
      if (revisionOf(await fs.stat(log)) !== revisionOf(this.#stat)) throw notSound
    }
    try {
      await publishWith(fs, log, file => this.#write(new LogDraft(file)), { before })
    } finally {
      const held = lock as Lock | undefined
      await held?.release().catch(() => held.release())
    }
  }

  async #write(draft: LogDraft): Promise<void> {
    const window = new FileWindow(this.#file, this.#stat.size)
    const header = scanHeader(await window.from(0, sampleBytes))
    if (typeof header === 'string') throw notSound
    await draft.copy(window, { start: 0, end: header.end })
    let hash = draft.hash
    let next = 0
    for await (const piece of walkLog(window, header.end, this.#signal)) {
      if (piece.kind !== 'frame' || piece.chain.prev !== hash || piece.chain.firstSeq !== next) throw notSound
      hash = piece.hash
      next = nextSeqOf(piece)
      this.#take(piece)
      if (this.#length > packedText) await this.#flush(draft)
    }
    await this.#flush(draft)
  }

  #take({ lines, chain }: FramePiece): void {
    for (const line of lines) {
      this.#lines.push(line)
      this.#length += line.length + 1
    }
    this.#count += chain.count
  }

  async #flush(draft: LogDraft): Promise<void> {
    if (this.#count === 0) return
    const chain = toChainLine({ firstSeq: this.#firstSeq, count: this.#count, prev: draft.hash })
    await draft.add(encodeFrame(`${chain}${packLines(this.#lines).join('\n')}\n`))
    this.#firstSeq += this.#count
    this.#count = 0
    this.#length = 0
    this.#lines = []
  }
}

/** The same lines with each run of chunks as a row; what would not come back to the letter stays. */
export function packLines(lines: readonly string[]): readonly string[] {
  const packed: string[] = []
  let run: SessionEvent[] = []
  const close = (): void => {
    for (const item of packChunks(run)) packed.push(JSON.stringify(item))
    run = []
  }
  for (const line of lines) {
    const event = line.startsWith(chunkLine) ? parseJson(line) : undefined
    if (event !== undefined && JSON.stringify(event) === line) run.push(event as SessionEvent)
    else {
      close()
      packed.push(line)
    }
  }
  close()
  return packed
}

const chunkLine = '{"type":"assistant/chunk",'
