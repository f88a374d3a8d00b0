import type { SessionEvent } from '@dsh/protocol'
import type { LostEvents } from '../../persistence/index.ts'
import type { Branch } from '../read/chain.ts'
import type { LogGap } from '../read/gaps.ts'
import type { LogScan } from '../read/scan.ts'

/** Events that stand behind a gap, or are gone with it. */
interface Loss {
  readonly lost: LostEvents
  readonly gap?: LogGap
}

export interface Findings {
  /** How many events the log has before anything is wrong. */
  readonly length: number
  readonly losses: readonly Loss[]
  /** Nothing is wrong, though there may be a tail. */
  readonly isSound: boolean
}

/** Reads a log to its end for what its repair would leave out. */
export async function findLosses(scan: LogScan): Promise<Findings> {
  const reader = new LossReader()
  for await (const { gap, events } of scan.batches()) {
    if (gap !== undefined) reader.readGap(gap)
    reader.readEvents(events)
  }
  const { tail } = scan.end()
  if (tail?.changed !== undefined) reader.readChanged(tail.reason, tail.changed)
  const { length, found } = reader
  return { length, losses: found ?? [], isSound: found === undefined }
}

/** What none of these branches keeps. */
export function lostWithout(losses: readonly Loss[], branches: readonly Branch[]): readonly LostEvents[] {
  const kept = new Set(branches.flatMap(({ frames }) => frames.map(({ index }) => index)))
  return losses
    .filter(({ gap }) => gap?.code !== 'LOG_FORKED' || !kept.has(gap.frame))
    .map(({ lost }) => lost)
}

class LossReader {
  length = 0
  found: Loss[] | undefined
  #gap: LogGap | undefined
  #readable: { fromSeq: number; toSeq: number } | undefined
  #next = 0

  readGap(gap: LogGap): void {
    const { fromSeq, toSeq, reason } = gap
    this.found ??= []
    this.#gap = gap
    this.#readable = undefined
    if (toSeq >= fromSeq) this.found.push({ lost: { fromSeq, toSeq, reason } })
  }

  readEvents(events: readonly SessionEvent[]): void {
    const first = events[0]?.seq
    const last = events.at(-1)?.seq
    if (first === undefined || last === undefined) return
    this.#next = last + 1
    if (this.found === undefined || this.#gap === undefined) this.length = last + 1
    else if (this.#readable !== undefined) this.#readable.toSeq = last
    else {
      const { reason } = this.#gap
      const lost = { fromSeq: first, toSeq: last, reason, isReadable: true }
      this.#readable = lost
      this.found.push({ lost, gap: this.#gap })
    }
  }

  readChanged(reason: string, count: number): void {
    this.found ??= []
    this.found.push({ lost: { fromSeq: this.#next, toSeq: this.#next + count - 1, reason } })
  }
}
