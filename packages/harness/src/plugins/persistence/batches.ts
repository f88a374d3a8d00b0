import type { SessionEvent } from '@dsh/protocol'
import type {
  Session,
  SessionStore,
  StoredBatch,
  StoredGap,
  StreamGap,
  StreamOptions,
} from '../../core/session/index.ts'

const eventsAtOnce = 500

/** The events a live session has at this moment. */
export async function* liveBatches(
  session: Session,
  { fromSeq = 0, toSeq = Infinity, signal }: StreamOptions = {},
): AsyncGenerator<StoredBatch> {
  const end = Math.min(session.length, toSeq + 1)
  for (let at = fromSeq; at < end; at += eventsAtOnce) {
    signal?.throwIfAborted()
    const events: SessionEvent[] = []
    for (let seq = at; seq < Math.min(at + eventsAtOnce, end); seq += 1) {
      const event = session.at(seq)
      if (event !== undefined) events.push(event)
    }
    yield { events }
  }
}

/** The batches of a medium, in which each event that is not right has become a gap. */
export async function* checkedBatches(
  batches: AsyncIterable<StoredBatch>,
  sessions: SessionStore,
): AsyncGenerator<StoredBatch> {
  for await (const { gap, events } of batches) {
    let sound: SessionEvent[] = []
    let before = gap
    for (const event of events) {
      const { seq } = event
      const reason = sessions.problemOf(event, seq)
      if (reason === undefined) {
        sound.push(event)
        continue
      }
      if (sound.length > 0 || before !== undefined) yield withGap(before, sound)
      sound = []
      before = { fromSeq: seq, toSeq: seq, bytes: 0, reason }
    }
    if (sound.length > 0 || before !== undefined) yield withGap(before, sound)
  }
}

/** All batches as one log. */
export async function gather(batches: AsyncIterable<StoredBatch>): Promise<{
  readonly events: readonly SessionEvent[]
  readonly gaps: readonly StoredGap[]
}> {
  const events: SessionEvent[] = []
  const gaps: (StoredGap & { readonly events: SessionEvent[] })[] = []
  for await (const { gap, events: more } of batches) {
    if (gap !== undefined) gaps.push({ ...toStreamGap(gap), events: [] })
    const list = gaps.at(-1)?.events ?? events
    for (const event of more) list.push(event)
  }
  return { events, gaps }
}

/** A gap without what a medium knows of it besides. */
export function toStreamGap({ fromSeq, toSeq, bytes, reason }: StreamGap): StreamGap {
  return { fromSeq, toSeq, bytes, reason }
}

function withGap(gap: StoredBatch['gap'], events: readonly SessionEvent[]): StoredBatch {
  return gap === undefined ? { events } : { gap, events }
}
