import { damagedLog } from '../../persistence/index.ts'
import type { RawLog } from '../../persistence/index.ts'
import type { FileSystem } from '../files/file-system.ts'
import { pathsIn, sessionFolder } from '../files/layout.ts'
import { assertOwn, withLog } from './open-log.ts'
import type { LogPlace } from './open-log.ts'
import { toChainLine } from '../format/records.ts'
import { scanHeader } from './scan.ts'
import { decodeText, walkLog } from '../format/walk.ts'
import { FileWindow } from '../files/window.ts'

/** What `zstdcat` prints of a log: the header line, then each frame's; frames that cannot be decoded are left out. */
export function readRawLog(fs: FileSystem, place: LogPlace, signal?: AbortSignal): Promise<RawLog> {
  return withLog(fs, place, async ({ file, size }) => {
    const window = new FileWindow(file, size)
    const bytes = await window.from(0, size)
    const found = scanHeader(bytes)
    if (typeof found === 'string') throw damagedLog(place.id, found, pathsIn(place.folder).log)
    const { header, end } = found
    assertOwn(header, place)
    const texts = [decodeText(bytes.subarray(0, end)) ?? '']
    for await (const piece of walkLog(window, end, signal))
      if (piece.kind === 'frame')
        texts.push(toChainLine(piece.chain), ...piece.lines.map(line => `${line}\n`))
    const content = Buffer.from(texts.join(''), 'utf8')
    return { header, filename: `${sessionFolder(place.id)}.jsonl`, content }
  })
}
