import type { SessionEvent } from '@dsh/protocol'
import type { StreamGap } from '../../persistence/index.ts'
import { nextSeqOf } from './chain.ts'
import type { Mark } from './chain.ts'
import type { DamagePiece, FrameMark } from '../format/walk.ts'

type LogGapCode =
  /** Bytes that are not what was written. */
  | 'FRAME_DAMAGED'
  | 'FRAME_MISSING'
  /** A frame is there twice. */
  | 'FRAME_REPEATED'
  /** A frame stands before the one it follows. */
  | 'FRAME_MISPLACED'
  /** A frame of another log, or behind one that was exchanged. */
  | 'FRAME_FOREIGN'
  /** Two programs wrote behind the same frame. */
  | 'LOG_FORKED'
  /** A line in a sound frame is no event. */
  | 'LINE_DAMAGED'
  | 'ARTIFACT_DAMAGED'

/** A gap, and where in the file it was found. */
export interface LogGap extends StreamGap {
  readonly code: LogGapCode
  readonly frame: number
  readonly offset: number
}

/** A part of a log; what `gap` says is lost before it. */
export interface LogBatch {
  readonly gap?: LogGap
  readonly events: SessionEvent[]
}

/** What is wrong with a log whose frames all continue each other, but not in the order of the file. */
export function misplacedGaps(main: readonly FrameMark[]): readonly LogGap[] {
  const end = main.at(-1)
  const next = end === undefined ? 0 : nextSeqOf(end)
  return main.flatMap((mark, at) => {
    const before = main[at - 1]
    if (before === undefined || before.start < mark.start) return []
    const { index: frame, start: offset, chain } = mark
    const reason = `frame ${frame} (seq ${chain.firstSeq}) stands before frame ${before.index}, which it follows`
    return [
      { code: 'FRAME_MISPLACED' as const, frame, offset, fromSeq: next, toSeq: next - 1, bytes: 0, reason },
    ]
  })
}

/** A gap, then the frame behind it; without a gap the frame continues the one before it. */
export interface LooseFrame {
  readonly gap?: LogGap
  readonly mark?: FrameMark
}

/** What of a file is no part of its log, in the order of the file. */
export function looseGaps(marks: readonly Mark[], main: readonly FrameMark[]): readonly LooseFrame[] {
  const reader = new LooseReader(main)
  for (const mark of marks) {
    if (mark.kind === 'damage') reader.readDamage(mark)
    else if (mark.kind === 'frame') reader.readFrame(mark)
  }
  reader.endDamage()
  return reader.found
}

class LooseReader {
  readonly found: LooseFrame[] = []
  readonly #main: ReadonlySet<FrameMark>
  readonly #mainEnd: number
  readonly #known = new Map<string, FrameMark>()
  #damage: DamagePiece | undefined
  /** The seq behind the last frame of the file that was read. */
  #next = 0
  #lastLoose: FrameMark | undefined

  constructor(main: readonly FrameMark[]) {
    const end = main.at(-1)
    this.#main = new Set(main)
    this.#mainEnd = end === undefined ? 0 : nextSeqOf(end)
    for (const mark of main) this.#known.set(mark.hash, mark)
  }

  readDamage(damage: DamagePiece): void {
    this.endDamage()
    this.#damage = damage
  }

  readFrame(mark: FrameMark): void {
    if (this.#main.has(mark)) this.endDamage()
    else this.#readLoose(mark)
    this.#known.set(mark.hash, mark)
    this.#next = nextSeqOf(mark)
  }

  /** Tells of damage that nothing loose stands behind. */
  endDamage(): void {
    if (this.#damage !== undefined) this.found.push({ gap: this.#gapOf(this.#damage, this.#next) })
    this.#damage = undefined
  }

  #readLoose(mark: FrameMark): void {
    const twin = this.#known.get(mark.hash)
    if (twin !== undefined) {
      this.endDamage()
      const reason = `frame ${mark.index} is frame ${twin.index} once more`
      this.found.push({ gap: gapAt(mark, { code: 'FRAME_REPEATED', reason }) })
      return
    }
    const gap =
      this.#damage === undefined ? this.#breakBefore(mark) : this.#gapOf(this.#damage, mark.chain.firstSeq)
    this.#damage = undefined
    this.#lastLoose = mark
    this.found.push({ ...(gap === undefined ? {} : { gap }), mark })
  }

  #gapOf({ index, start, end, reason }: DamagePiece, next: number): LogGap {
    return {
      code: 'FRAME_DAMAGED',
      frame: index,
      offset: start,
      fromSeq: this.#next,
      toSeq: next - 1,
      bytes: end - start,
      reason,
    }
  }

  #breakBefore(mark: FrameMark): LogGap | undefined {
    const { index, chain } = mark
    const { firstSeq, prev } = chain
    if (prev === this.#lastLoose?.hash && firstSeq === nextSeqOf(this.#lastLoose)) return undefined
    const parent = this.#known.get(prev)
    if (prev === this.#headerHashOf(mark) || (parent !== undefined && nextSeqOf(parent) === firstSeq)) {
      const reason = `frame ${index} goes on at seq ${firstSeq}, where the log has events up to seq ${this.#mainEnd - 1}: two programs wrote this log`
      return gapAt(mark, { code: 'LOG_FORKED', reason })
    }
    if (firstSeq > this.#next) {
      const reason = `frame ${index} begins with seq ${firstSeq} where seq ${this.#next} was expected`
      return { ...gapAt(mark, { code: 'FRAME_MISSING', reason }), fromSeq: this.#next }
    }
    const reason = `frame ${index} (seq ${firstSeq}) was written behind another frame than the one before it`
    return gapAt(mark, { code: 'FRAME_FOREIGN', reason })
  }

  /** The hash of the header, as the first frame of the log names it, where `mark` too would be the first. */
  #headerHashOf({ chain }: FrameMark): string | undefined {
    const [first] = this.#main
    return chain.firstSeq === 0 ? first?.chain.prev : undefined
  }
}

/** A gap before the frame in which no seq is lost. */
function gapAt(
  { index, start, chain }: FrameMark,
  { code, reason }: { readonly code: LogGapCode; readonly reason: string },
): LogGap {
  const { firstSeq } = chain
  return { code, frame: index, offset: start, fromSeq: firstSeq, toSeq: firstSeq - 1, bytes: 0, reason }
}
