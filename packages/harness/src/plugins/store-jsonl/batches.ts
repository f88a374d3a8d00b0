import type { StoredBatch, StreamOptions } from '../persistence/index.ts'
import type { FileSystem } from './file-system.ts'
import { pathsIn } from './layout.ts'
import { assertOwn, damaged, openLog, textsBeside } from './open-log.ts'
import type { LogPlace } from './open-log.ts'
import { LogScan, toStreamGap } from './scan.ts'

/** The events of a log in batches; the file is open for as long as they are read. */
export async function* streamLog(
  fs: FileSystem,
  place: LogPlace,
  options: StreamOptions = {},
): AsyncGenerator<StoredBatch> {
  const { fromSeq, toSeq = Infinity, signal } = options
  const { file } = await openLog(fs, place)
  try {
    const scan = await LogScan.open(file, { fromSeq, signal, getText: textsBeside(fs, place) })
    if (typeof scan === 'string') throw damaged(place.id, scan, pathsIn(place.folder).log)
    assertOwn(scan.header, place)
    for await (const { gap, events } of scan.batches()) {
      const isLast = (events.at(-1)?.seq ?? 0) >= toSeq
      const batch = { events: isLast ? events.filter(({ seq }) => seq <= toSeq) : events }
      yield gap === undefined ? batch : { gap: toStreamGap(gap), ...batch }
      if (isLast) return
    }
  } finally {
    await file.close()
  }
}
