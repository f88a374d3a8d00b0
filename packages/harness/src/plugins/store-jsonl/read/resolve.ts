import type { SessionEvent } from '@dsh/protocol'
import type { LogBatch, LogGap } from './gaps.ts'
import { putBack } from '../format/spill.ts'
import type { Spill } from '../format/spill.ts'

export type GetText = (sha256: string) => Promise<Buffer | undefined>

export interface MissingText {
  readonly event: SessionEvent
  readonly spill: Spill
  /** Where the line of the event stands. */
  readonly frame: number
  readonly offset: number
}

/** Puts the texts that stand beside the log back into their events. Each event that lacks one becomes a gap. */
export async function resolveTexts(
  batch: LogBatch,
  texts: readonly MissingText[],
  get: GetText,
): Promise<readonly LogBatch[]> {
  const broken = new Map<SessionEvent, LogGap>()
  for (const missing of texts) {
    const reason = await resolve(missing, get)
    if (reason === undefined) continue
    const { seq } = missing.event
    const { frame, offset } = missing
    const gap = { frame, offset, fromSeq: seq, toSeq: seq, bytes: 0, reason }
    broken.set(missing.event, { code: 'ARTIFACT_DAMAGED', ...gap })
  }
  return broken.size === 0 ? [batch] : cut(batch, broken)
}

async function resolve({ event, spill }: MissingText, get: GetText): Promise<string | undefined> {
  const bytes = await get(spill.sha256)
  if (bytes === undefined)
    return `a text of event ${event.seq} is missing or damaged: artifact ${spill.sha256}`
  return putBack(event, spill, bytes.toString('utf8'))
    ? undefined
    : `event ${event.seq} has no place for its text`
}

function cut({ gap, events }: LogBatch, broken: ReadonlyMap<SessionEvent, LogGap>): readonly LogBatch[] {
  const parts: LogBatch[] = [{ ...(gap === undefined ? {} : { gap }), events: [] }]
  for (const event of events) {
    const lost = broken.get(event)
    if (lost === undefined) parts.at(-1)?.events.push(event)
    else parts.push({ gap: lost, events: [] })
  }
  return parts
}
