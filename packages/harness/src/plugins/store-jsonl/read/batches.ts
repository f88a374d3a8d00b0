import type { SessionId } from '@dsh/protocol'
import { damagedLog, toStreamGap } from '../../persistence/index.ts'
import type { StoredBatch, StreamOptions } from '../../persistence/index.ts'
import type { FileSystem, OpenFile } from '../files/file-system.ts'
import { pathsIn } from '../files/layout.ts'
import { assertOwn, openLog, textsBeside } from './open-log.ts'
import type { LogPlace } from './open-log.ts'
import { LogScan } from './scan.ts'
import type { ScanOptions } from './scan.ts'
import { frameAgain } from '../format/walk.ts'
import type { FrameMark } from '../format/walk.ts'
import { FileWindow } from '../files/window.ts'

const mostMarks = 32

/** How far logs were streamed, so that who follows one does not walk all of it each time it has grown. */
export class StreamMarks {
  readonly #marks = new Map<SessionId, FrameMark>()

  /** A frame that is still there and holds events from `fromSeq` on, or earlier ones. */
  async find(file: OpenFile, id: SessionId, fromSeq: number): Promise<FrameMark | undefined> {
    const mark = this.#marks.get(id)
    if (mark === undefined || mark.chain.firstSeq > fromSeq) return undefined
    const { size } = await file.stat()
    const isThere = mark.end <= size && (await frameAgain(new FileWindow(file, size), mark)) !== undefined
    if (isThere) return mark
    this.#marks.delete(id)
    return undefined
  }

  keep(id: SessionId, mark: FrameMark | undefined): void {
    if (mark === undefined) return
    const { index, start, end, hash, chain } = mark
    this.#marks.delete(id)
    this.#marks.set(id, { kind: 'frame', index, start, end, hash, chain })
    for (const oldest of this.#marks.keys()) {
      if (this.#marks.size <= mostMarks) return
      this.#marks.delete(oldest)
    }
  }
}

/** The events of a log in batches; the file is open for as long as they are read. */
export async function* streamLog(
  fs: FileSystem,
  place: LogPlace,
  marks: StreamMarks,
  options: StreamOptions = {},
): AsyncGenerator<StoredBatch> {
  const { fromSeq, signal } = options
  const { file } = await openLog(fs, place)
  const open = async (given: Pick<ScanOptions, 'begin' | 'fromSeq'>): Promise<LogScan> => {
    const scan = await LogScan.open(file, { ...given, signal, getText: textsBeside(fs, place) })
    if (typeof scan === 'string') throw damagedLog(place.id, scan, pathsIn(place.folder).log)
    assertOwn(scan.header, place)
    return scan
  }
  try {
    const scan = await open({ begin: await marks.find(file, place.id, fromSeq ?? 0), fromSeq })
    const next = (yield* batchesOf(scan, options)) ?? fromSeq ?? 0
    marks.keep(place.id, scan.last)
    if (scan.isLost && next <= (options.toSeq ?? Infinity))
      yield* batchesOf(await open({ fromSeq: next }), options)
  } finally {
    await file.close()
  }
}

/** Returns the seq that follows the last event. */
async function* batchesOf(
  scan: LogScan,
  { toSeq = Infinity }: StreamOptions,
): AsyncGenerator<StoredBatch, number | undefined> {
  let next: number | undefined
  for await (const { gap, events } of scan.batches()) {
    const last = events.at(-1)?.seq ?? -1
    const batch = { events: last < toSeq ? events : events.filter(({ seq }) => seq <= toSeq) }
    yield gap === undefined ? batch : { gap: toStreamGap(gap), ...batch }
    if (last >= toSeq) return last + 1
    if (last >= 0) next = last + 1
  }
  return next
}
