import type { SessionHeader } from '@dsh/protocol'
import type { MediumProblem, MediumReport } from '../../persistence/index.ts'
import type { FileSystem } from '../files/file-system.ts'
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
  if (tail?.changed !== undefined) problems.push(toTailProblem(tail, { frame: scan.frames, seq: next }))
  const tornBytes = tail === undefined || tail.changed !== undefined ? 0 : tail.bytes
  return {
    header: scan.header,
    frames: scan.frames,
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
