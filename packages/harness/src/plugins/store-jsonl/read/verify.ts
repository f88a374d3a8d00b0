import type { SessionHeader } from '@dsh/protocol'
import type { MediumProblem, MediumReport } from '../../persistence/index.ts'
import type { FileSystem } from '../files/file-system.ts'
import { descriptorAt, strayDescriptor } from '../format/frames.ts'
import { findFlippedBits, flippedText } from '../repair/bits.ts'
import type { LogGap } from './gaps.ts'
import { foreignText, textsBeside, withLog } from './open-log.ts'
import type { LogPlace, OpenedFile } from './open-log.ts'
import { LogScan } from './scan.ts'
import type { TornTail } from './scan.ts'

/** Reads the log as whoever opens it does, so that both find the same. */
export function verifyLog(fs: FileSystem, place: LogPlace, signal?: AbortSignal): Promise<MediumReport> {
  return withLog(fs, place, opened => reportOn(fs, { place, opened, signal }))
}

async function reportOn(
  fs: FileSystem,
  { place, opened, signal }: { place: LogPlace; opened: OpenedFile; signal: AbortSignal | undefined },
): Promise<MediumReport> {
  const { file, size: bytes } = opened
  const scan = await LogScan.open(file, { signal, getText: textsBeside(fs, place) })
  if (typeof scan === 'string') {
    const problem = { code: 'HEADER_DAMAGED', message: scan, frame: 0, offset: 0 }
    return { frames: 0, events: 0, bytes, problems: [problem] }
  }
  const problems: MediumProblem[] = [...problemsOfHeader(scan.header, place)]
  let events = 0
  let next = 0
  for await (const batch of scan.batches()) {
    if (batch.gap !== undefined) problems.push(toProblem(batch.gap))
    events += batch.events.length
    next = (batch.events.at(-1)?.seq ?? next - 1) + 1
  }
  const { tail } = scan.end()
  const flipped = problems.length > 0 ? undefined : await flippedAtEnd(opened, scan)
  if (flipped !== undefined) problems.push(flipped)
  else if (tail?.changed !== undefined) problems.push(toTailProblem(tail, { frame: scan.frames, seq: next }))
  const tornBytes = tail === undefined || problems.length > 0 ? 0 : tail.bytes
  return {
    header: scan.header,
    frames: scan.frames,
    frameStarts: scan.frameStarts,
    events,
    bytes,
    problems,
    ...(tornBytes === 0 ? {} : { tornBytes }),
  }
}

function problemsOfHeader(header: SessionHeader, place: LogPlace): readonly MediumProblem[] {
  if (header.id === place.id) return []
  return [{ code: 'HEADER_FOREIGN', message: foreignText(header, place), frame: 0, offset: 0 }]
}

/** A last frame of which one bit is another: it may look like a write that was broken off, or like a sound one. */
async function flippedAtEnd({ file, size }: OpenedFile, scan: LogScan): Promise<MediumProblem | undefined> {
  const { tail, length } = scan.end()
  const { last } = scan
  const isStray =
    last !== undefined && strayDescriptor(await scan.window.from(last.start, descriptorAt + 1)) !== undefined
  if (!isStray && (tail === undefined || tail.changed !== undefined)) return undefined
  if ((await findFlippedBits(file, size)).length === 0) return undefined
  const at = isStray
    ? { frame: scan.frames - 1, seq: last.chain.firstSeq, offset: last.start }
    : { frame: scan.frames, seq: length - (tail?.kept ?? 0), offset: tail?.start ?? size }
  return {
    code: 'LAST_FRAME_DAMAGED',
    message: flippedText,
    ...at,
  }
}

function toProblem({ code, reason, frame, offset, fromSeq }: LogGap): MediumProblem {
  return { code, message: reason, frame, seq: fromSeq, offset }
}

function toTailProblem(
  { start, reason }: TornTail,
  { frame, seq }: { readonly frame: number; readonly seq: number },
): MediumProblem {
  const message = `${reason}, and nothing of it is missing: it was changed, or a crash changed its end`
  return { code: 'LAST_FRAME_DAMAGED', message, frame, seq, offset: start }
}
