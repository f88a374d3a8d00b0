import type { SessionEvent } from '@dsh/protocol'
import type { StoredGap } from '../../core/session/index.ts'
import type { MissingText, ScannedLog } from './scan.ts'
import { putBack } from './spill.ts'

/** Puts the texts that stand beside the log back into their events. A log without one of them is damaged there. */
export async function resolveTexts(
  log: ScannedLog,
  get: (sha256: string) => Promise<Buffer | undefined>,
): Promise<ScannedLog> {
  const broken = new Map<SessionEvent, string>()
  for (const missing of log.spills) {
    const reason = await resolve(missing, get)
    if (reason !== undefined) broken.set(missing.event, reason)
  }
  if (broken.size === 0) return log
  const gaps = log.gaps.flatMap(gap => cut(gap.events, broken, events => ({ ...gap, events })))
  const [sound, ...own] = cut(log.events, broken, events => events)
  const events = sound as readonly SessionEvent[]
  if (own.length === 0) return { ...log, gaps: gaps as readonly StoredGap[] }
  const length = log.length - (log.events.length - events.length)
  return { ...log, events, length, gaps: [...own, ...gaps] as readonly StoredGap[] }
}

async function resolve(
  { event, spill }: MissingText,
  get: (sha256: string) => Promise<Buffer | undefined>,
): Promise<string | undefined> {
  const bytes = await get(spill.sha256)
  if (bytes === undefined)
    return `a text of event ${event.seq} is missing or damaged: artifact ${spill.sha256}`
  return putBack(event, spill, bytes.toString('utf8'))
    ? undefined
    : `event ${event.seq} has no place for its text`
}

/** Splits `events` at each broken one: what stands before the first, then a gap for each. */
function cut<T>(
  events: readonly SessionEvent[],
  broken: ReadonlyMap<SessionEvent, string>,
  first: (events: readonly SessionEvent[]) => T,
): readonly (T | StoredGap)[] {
  const sound: SessionEvent[] = []
  const gaps: (StoredGap & { readonly events: SessionEvent[] })[] = []
  for (const event of events) {
    const reason = broken.get(event)
    if (reason === undefined) (gaps.at(-1)?.events ?? sound).push(event)
    else gaps.push({ fromSeq: event.seq, toSeq: event.seq, bytes: 0, reason, events: [] })
  }
  return [first(sound), ...gaps]
}
