import type { SessionEvent } from '@dsh/protocol'
import { isChunkRow, packChunks } from '../../../core/session/index.ts'
import { encodeFrame } from './frames.ts'
import { chainHash, toChainLine } from './records.ts'
import { toEventLine } from './spill.ts'
import type { KeepText } from './spill.ts'

export interface EncodedFrames {
  readonly bytes: Buffer
  /** `chainHash` of the last frame. */
  readonly lastHash: string
}

/** A frame stays below one block of Zstandard, so that whatever part of a write survives ends at a whole frame. */
const longestFrameText = 96 * 1024

/** Frames of `events` that continue a log whose last frame has the hash `prev`. Long texts go to `keep` first. */
export async function encodeEvents(
  events: readonly SessionEvent[],
  prev: string,
  keep: KeepText,
): Promise<EncodedFrames> {
  const frames: Buffer[] = []
  let lastHash = prev
  let lines: string[] = []
  let length = 0
  let count = 0
  let firstSeq = events[0]?.seq ?? 0
  const close = (): void => {
    const chain = toChainLine({ firstSeq, count, prev: lastHash })
    const frame = encodeFrame(`${chain}${lines.join('\n')}\n`)
    frames.push(frame)
    lastHash = chainHash(frame)
    firstSeq += count
    lines = []
    length = 0
    count = 0
  }
  for (const item of packChunks(events)) {
    const isRow = isChunkRow(item)
    const line = isRow ? JSON.stringify(item) : toEventLine(item, keep)
    const text = typeof line === 'string' ? line : await line
    if (lines.length > 0 && length + text.length > longestFrameText) close()
    lines.push(text)
    length += text.length + 1
    count += isRow ? item.data.dt.length + 1 : 1
  }
  if (lines.length > 0) close()
  return { bytes: frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames), lastHash }
}
