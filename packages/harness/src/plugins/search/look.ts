import type { GlobPattern } from './pattern.ts'
import type { FoundPath, SearchPlace } from './place.ts'
import { PathReader } from './records.ts'
import type { Ripgrep, RipgrepRun } from './ripgrep.ts'

/** One search and where it looks. */
export interface Look {
  readonly place: SearchPlace
  /** Only files that fit; a file that is named itself always does. */
  readonly pattern: GlobPattern | undefined
  readonly signal: AbortSignal
}

/** Files that fit and that ignore files keep out of a search which found nothing. */
export interface IgnoredFiles {
  readonly paths: readonly string[]
  /** There are more than these. */
  readonly isMore: boolean
}

const ignoredPatienceMs = 2000
const maxIgnored = 100

/** What makes the search program choose among files by name, where it can. What it lets through is looked at again. */
export function nameArgs({ place, pattern }: Look): readonly string[] {
  if (place.type === 'file' || pattern?.names === undefined) return []
  return [...pattern.names.map(name => `--type-add=want:${name}`), '--type=want']
}

/** A printed path as it is to be shown; undefined for one that does not fit or that nobody may see. */
export function fitting({ place, pattern }: Look, printed: string): FoundPath | undefined {
  const found = place.find(printed)
  if (found === undefined || found.below === '' || pattern === undefined) return found
  return pattern.matches(found.below) ? found : undefined
}

/** Remembers its last answer: lines of one file come together. */
export function fittingLast(look: Look): (printed: string) => FoundPath | undefined {
  let [last, found] = ['', undefined as FoundPath | undefined]
  return printed => {
    if (printed !== last) [last, found] = [printed, fitting(look, printed)]
    return found
  }
}

/**
 * Looks again, at ignored files too, after a search found nothing. `args` make the search program print paths that end
 * in NUL. Takes at most two seconds, and what it fails at is nobody's trouble.
 */
export async function lookAtIgnored(
  ripgrep: Ripgrep,
  look: Look,
  args: readonly string[],
): Promise<IgnoredFiles | undefined> {
  if (look.place.type === 'file') return undefined
  const paths: string[] = []
  let isMore = false
  const reader = new PathReader(printed => {
    const found = fitting(look, printed)
    isMore = found !== undefined && paths.length === maxIgnored
    if (found !== undefined && !isMore) paths.push(found.shown)
    return !isMore
  })
  const patience = AbortSignal.timeout(ignoredPatienceMs)
  const run: RipgrepRun = {
    args: ['--no-ignore', '--null', ...args, ...nameArgs(look), '--', look.place.argument],
    cwd: look.place.cwd,
    signal: AbortSignal.any([look.signal, patience]),
    onOutput: bytes => (reader.push(bytes) ? 'go on' : 'stop'),
  }
  try {
    await ripgrep(run)
  } catch {
    look.signal.throwIfAborted()
    isMore = patience.aborted
  }
  return paths.length === 0 ? undefined : { paths: paths.toSorted(), isMore }
}
