import type { SessionEvent } from '@dsh/protocol'
import { damagedLog, PersistenceError } from '../../persistence/index.ts'
import type { RepairedBranch, RepairResult } from '../../persistence/index.ts'
import { putArtifact } from '../files/artifacts.ts'
import { findFlippedBits, patchedFile } from './bits.ts'
import { storeBranch } from './branch.ts'
import { mapLog, nextSeqOf, traceChain } from '../read/chain.ts'
import type { Branch, LogChain } from '../read/chain.ts'
import { storeError } from '../files/errors.ts'
import type { OpenFile, ReadableFile } from '../files/file-system.ts'
import type { LogBatch } from '../read/gaps.ts'
import { revisionOf } from '../files/find.ts'
import { keepBeside } from '../files/keep.ts'
import { pathsIn } from '../files/layout.ts'
import { underLock } from '../files/lock.ts'
import type { Lock, LockHost } from '../files/lock.ts'
import { assertWritable, textsBeside, withLog } from '../read/open-log.ts'
import type { LogPlace, OpenedFile } from '../read/open-log.ts'
import { findLosses, lostWithout } from './losses.ts'
import { makeFolder, publishWith, removeDrafts } from '../files/publish.ts'
import { LogScan } from '../read/scan.ts'
import type { FrameMark } from '../format/walk.ts'
import { LogDraft } from '../format/write-log.ts'

/**
 * Puts the sound beginning of a log in its place. Everything else is stored before, and the old file keeps a name, so
 * that a crash at any point leaves the old log or the new one and never less than there was.
 */
export async function repairLog(host: LockHost, place: LogPlace): Promise<RepairResult> {
  const { lock: path } = pathsIn(place.folder)
  try {
    return await underLock(path, host, async lock => {
      await removeDrafts(host.fs, place.folder)
      return withLog(host.fs, place, opened => new Repair(host, { place, opened, lock }).run())
    })
  } catch (error) {
    throw storeError(error, place.id, place.folder, 'repaired')
  }
}

type BranchSource = Pick<LogChain, 'main'> & Pick<LogScan, 'header' | 'toolStart'>

class Repair {
  readonly #host: LockHost
  readonly #place: LogPlace
  readonly #opened: OpenedFile
  readonly #lock: Lock
  /** The log as it is once flipped bits are put right. */
  #file: ReadableFile

  constructor(host: LockHost, work: { place: LogPlace; opened: OpenedFile; lock: Lock }) {
    this.#host = host
    this.#place = work.place
    this.#opened = work.opened
    this.#file = work.opened.file
    this.#lock = work.lock
  }

  async run(): Promise<RepairResult> {
    const { file, size } = this.#opened
    const patches = await findFlippedBits(file, size)
    const mended = patches.length
    this.#file = patchedFile(file, patches)
    const scan = await this.#scan()
    assertWritable(scan.header, this.#place)
    const { length, losses, isSound } = await findLosses(scan)
    if (isSound && mended === 0) return { events: length, branches: [] }
    const { header, toolStart } = scan
    const chain = traceChain(await mapLog(scan.window, scan.start), scan.headerHash)
    // One that leaves the log behind what is lost has no beginning any more.
    const whole = chain.branches.filter(({ seedLength }) => seedLength <= length)
    const branches: RepairedBranch[] = []
    for (const branch of whole)
      branches.push(await this.#store(branch, { main: chain.main, header, toolStart }))
    const lost = lostWithout(losses, whole)
    const kept = await this.#swap(chain.main, length)
    return {
      kept,
      events: length,
      ...(mended === 0 ? {} : { mended }),
      ...(lost.length === 0 ? {} : { lost }),
      branches,
    }
  }

  async #scan(fromSeq = 0): Promise<LogScan> {
    const { fs } = this.#host
    const scan = await LogScan.open(this.#file, { fromSeq, getText: textsBeside(fs, this.#place) })
    if (typeof scan === 'string') throw damagedLog(this.#place.id, scan, pathsIn(this.#place.folder).log)
    return scan
  }

  async #store({ seedLength, frames }: Branch, log: BranchSource): Promise<RepairedBranch> {
    const shared = log.main.filter(mark => nextSeqOf(mark) <= seedLength)
    const scan = await this.#scan()
    const batches = soundBatches(scan.batchesOf([...shared, ...frames]))
    const { header, toolStart } = log
    const hash = frames.at(-1)?.hash ?? ''
    return storeBranch(this.#host, { header, toolStart, place: this.#place, seedLength, hash }, batches)
  }

  /** Gives where the old log is. */
  async #swap(main: readonly FrameMark[], length: number): Promise<string> {
    const { fs } = this.#host
    const { folder } = this.#place
    const { log } = pathsIn(folder)
    const whole = main.filter(mark => nextSeqOf(mark) <= length)
    const last = whole.at(-1)
    const next = last === undefined ? 0 : nextSeqOf(last)
    const scan = await this.#scan(next)
    let kept = ''
    const write = async (file: OpenFile): Promise<void> => {
      const draft = new LogDraft(file)
      await draft.copy(scan.window, { start: 0, end: scan.start })
      for (const mark of whole) await draft.copy(scan.window, mark)
      const rest = next === length ? [] : await firstEvents(scan, length)
      await draft.addEvents(rest, bytes => this.#keepText(bytes))
    }
    const before = async (): Promise<void> => {
      await this.#lock.check()
      if (revisionOf(await fs.stat(log)) !== this.#opened.revision)
        throw new PersistenceError('STALE_APPEND', `the log was changed while it was repaired: ${log}`)
      kept = await keepBeside(fs, log, nth => `log-before-repair-${this.#host.now()}${nth}.jsonl.zst`)
    }
    await publishWith(fs, log, write, { before })
    return kept
  }

  async #keepText(bytes: Uint8Array): Promise<string> {
    const { artifacts } = pathsIn(this.#place.folder)
    await makeFolder(this.#host.fs, artifacts)
    return (await putArtifact(this.#host.fs, artifacts, bytes, 'text/plain')).sha256
  }
}

/** The events behind the whole frames, up to `length`. */
async function firstEvents(scan: LogScan, length: number): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = []
  for await (const batch of soundBatches(scan.batches())) events.push(...batch)
  return events.filter(({ seq }) => seq < length)
}

async function* soundBatches(batches: AsyncIterable<LogBatch>): AsyncGenerator<readonly SessionEvent[]> {
  for await (const { gap, events } of batches) {
    if (gap !== undefined) return
    yield events
  }
}
