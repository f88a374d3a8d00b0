import { isUtf8 } from 'node:buffer'
import { decodeTornFrame, frameAt, uncheckedContent } from './frames.ts'
import { isRowLine } from './records.ts'
import type { ChainLine } from './records.ts'
import { splitFrame } from './walk.ts'

/** The complete lines of an incomplete frame; none of a frame that was overwritten. */
export function linesOfTail(bytes: Buffer): {
  readonly chain: ChainLine | undefined
  readonly lines: readonly string[]
} {
  const intact = bytes.subarray(0, intactEnd(bytes))
  const frame = frameAt(intact, 0)
  if (frame.kind !== 'torn') return nothing
  const decoded = decodeTornFrame(intact.subarray(0, frame.blocksEnd))
  const complete = decoded.subarray(0, decoded.lastIndexOf('\n') + 1)
  return isUtf8(complete) ? splitFrame(complete.toString('utf8')) : nothing
}

const nothing = { chain: undefined, lines: [] }

/**
 * How many events the tail holds, where it is one frame of which nothing is missing; else undefined. A write that a
 * crash broke off has lost its end; such a frame has been changed.
 */
export function eventsOfChanged(bytes: Buffer): number | undefined {
  const frame = frameAt(bytes, 0)
  if (frame.kind !== 'data' || frame.end !== bytes.length || bytes.at(-1) === 0) return undefined
  const { chain, lines } = splitFrame(uncheckedContent(bytes)?.toString('utf8') ?? '')
  return chain !== undefined && (lines.length === chain.count || lines.some(isRowLine))
    ? chain.count
    : undefined
}

/** No frame has that many zeros in a row, so they are a block that never reached the disk. */
const hole = Buffer.alloc(64)

/** Whether a part of the tail never reached the disk. One zero at the end may as well be the last of a checksum. */
export function hasHole(bytes: Buffer): boolean {
  return bytes.includes(hole) || (bytes.at(-1) === 0 && bytes.at(-2) === 0)
}

function intactEnd(bytes: Buffer): number {
  const firstHole = bytes.indexOf(hole)
  let end = firstHole === -1 ? bytes.length : firstHole
  while (end > 0 && bytes[end - 1] === 0) end -= 1
  return end
}
