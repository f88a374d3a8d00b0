import { walkLog } from '../format/walk.ts'
import type { DamagePiece, FrameMark, TailPiece } from '../format/walk.ts'
import type { FileWindow } from '../files/window.ts'

export type Mark = FrameMark | DamagePiece | TailPiece

/** Every piece of a log file without its content, in the order of the file. For logs that are not as they should be. */
export async function mapLog(
  window: FileWindow,
  start: number,
  signal?: AbortSignal,
): Promise<readonly Mark[]> {
  const marks: Mark[] = []
  for await (const piece of walkLog(window, start, signal)) {
    if (piece.kind !== 'frame') marks.push(piece)
    else {
      const { lines: _, ...mark } = piece
      marks.push(mark)
    }
  }
  return marks
}

function isFrame(mark: Mark): mark is FrameMark {
  return mark.kind === 'frame'
}

export function nextSeqOf({ chain }: FrameMark): number {
  return chain.firstSeq + chain.count
}

/** How the frames of a log continue each other, wherever they stand in the file. */
export interface LogChain {
  /** From the header on; at a fork what stands first in the file, so that what was once read stays what is read. */
  readonly main: readonly FrameMark[]
  /** What other writers made of the log. */
  readonly branches: readonly Branch[]
}

/** A course of the log that `main` did not take. */
export interface Branch {
  /** How many events it shares with `main`. */
  readonly seedLength: number
  /** Those behind them. */
  readonly frames: readonly FrameMark[]
}

export function traceChain(marks: readonly Mark[], headerHash: string): LogChain {
  const following = Map.groupBy(unique(marks.filter(isFrame)), ({ chain }) => chain.prev)
  const after = (hash: string, seq: number): readonly FrameMark[] =>
    (following.get(hash) ?? []).filter(({ chain }) => chain.firstSeq === seq)
  const open: Branch[] = []
  /** Goes on from `path` as far as there are frames, and leaves what else could be gone for later. */
  const follow = (
    path: FrameMark[],
    from: readonly FrameMark[],
    seedLength?: number,
  ): readonly FrameMark[] => {
    for (let found = from; found.length > 0;) {
      const [next, ...others] = found as readonly [FrameMark, ...FrameMark[]]
      const shared = seedLength === undefined ? [] : path
      for (const other of others)
        open.push({ seedLength: seedLength ?? other.chain.firstSeq, frames: [...shared, other] })
      path.push(next)
      found = after(next.hash, nextSeqOf(next))
    }
    return path
  }
  const main = follow([], after(headerHash, 0))
  const branches: Branch[] = []
  for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
    const { seedLength, frames } = branch
    const last = frames.at(-1) as FrameMark
    branches.push({ seedLength, frames: follow([...frames], after(last.hash, nextSeqOf(last)), seedLength) })
  }
  return { main, branches: branches.toSorted((a, b) => startOf(a) - startOf(b)) }
}

function startOf({ frames }: Branch): number {
  return frames.at(-1)?.start ?? 0
}

/** A frame that is there twice is one frame. */
function unique(frames: readonly FrameMark[]): readonly FrameMark[] {
  const seen = new Set<string>()
  return frames.filter(({ hash }) => !seen.has(hash) && seen.add(hash))
}
