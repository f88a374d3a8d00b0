import { fittingLast, lookAtIgnored, nameArgs } from './look.ts'
import type { Look } from './look.ts'
import { MatchCollector } from './matches.ts'
import { CountReader, LineReader, PathReader } from './records.ts'
import type { GrepMode, GrepValue } from './render.ts'
import type { Ripgrep } from './ripgrep.ts'
import { standing } from './verify.ts'

export interface GrepQuery {
  readonly regex: string
  readonly mode: GrepMode
  readonly offset: number
  readonly limit: number
  readonly context: number
  readonly ignoreCase: boolean
  /** A dot matches line ends too. */
  readonly multiline: boolean
}

interface GrepLimits {
  readonly grepMaxLineBytes: number
  readonly grepMaxBytes: number
  readonly rawOutputMaxBytes: number
}

type Found = Pick<GrepValue, 'files' | 'matches' | 'totalFiles' | 'shown'> & {
  /** Files whose lines are held back, since they are not in the file that should have them. */
  readonly vanished?: number
}

/** Takes what the search program prints, and says at the end what came of it. */
interface Collecting {
  readonly args: readonly string[]
  push(bytes: Buffer): void
  found(): Found | Promise<Found>
}

/** What a long line needs beyond what is shown of it, so that it can be told from one that fits. */
const columnMargin = 8

/** Searches contents. Beyond a bound of output the search ends, and what came until then is the answer. */
export async function grep(
  ripgrep: Ripgrep,
  look: Look,
  { query, config }: { readonly query: GrepQuery; readonly config: GrepLimits },
): Promise<GrepValue> {
  const { mode, offset } = query
  const common = [...regexArgs(query), ...nameArgs(look)]
  const collecting = query.mode === 'content' ? lines(look, query, config) : files(look, query)
  let bytes = 0
  const { isStopped, unreadable } = await ripgrep({
    args: [
      '--null',
      '--with-filename',
      '--sortr=modified',
      ...collecting.args,
      ...common,
      '--',
      look.place.argument,
    ],
    cwd: look.place.cwd,
    signal: look.signal,
    onOutput(piece) {
      bytes += piece.length
      collecting.push(piece)
      return bytes > config.rawOutputMaxBytes ? 'stop' : 'go on'
    },
  })
  const { vanished = 0, ...found } = await collecting.found()
  const ignored =
    found.totalFiles === 0
      ? await lookAtIgnored(ripgrep, look, ['--files-with-matches', ...regexArgs(query)])
      : undefined
  return {
    mode,
    offset,
    ...found,
    isPartial: isStopped,
    unreadable: unreadable + vanished,
    ...(ignored && { ignored }),
  }
}

const namesLineFeed = /\n|\\n/
const namesReturn = /\r|\\r/

/**
 * Line ends in the pattern can only be found across lines. CRLF ends a line as LF does, unless the pattern itself speaks
 * of CR.
 */
function regexArgs({ regex, ignoreCase, multiline }: GrepQuery): readonly string[] {
  const spansLines = multiline || namesLineFeed.test(regex)
  const isPlain = !namesReturn.test(regex)
  return [
    ...(isPlain ? ['--crlf'] : []),
    ...(ignoreCase ? ['--ignore-case'] : []),
    ...(spansLines ? ['--multiline'] : []),
    ...(multiline ? ['--multiline-dotall'] : []),
    `--regexp=${isPlain ? withAnyLineEnd(regex) : regex}`,
  ]
}

/** In a class a line feed stays one character. */
function withAnyLineEnd(regex: string): string {
  if (regex.includes('[')) return regex
  return regex.replace(/\\[^]|\n/g, part => (part === '\n' || part === '\\n' ? '\\r?\\n' : part))
}

function lines(look: Look, { offset, limit, context }: GrepQuery, limits: GrepLimits): Collecting {
  const { grepMaxLineBytes: maxLineBytes, grepMaxBytes: maxBytes } = limits
  const collector = new MatchCollector({ offset, limit, context, maxLineBytes, maxBytes })
  const find = fittingLast(look)
  const reals = new Map<string, string>()
  const reader = new LineReader(record => {
    const path = find(record.path)
    if (path === undefined) return true
    if (collector.add(path.shown, record)) reals.set(path.shown, path.real)
    return true
  })
  return {
    args: [
      '--line-number',
      '--no-heading',
      '--no-context-separator',
      `--max-columns=${maxLineBytes + columnMargin}`,
      '--max-columns-preview',
      ...(context > 0 ? [`--context=${context}`] : []),
    ],
    push: bytes => void reader.push(bytes),
    async found() {
      const { files: kept, matches, fileCount: totalFiles } = collector
      const sound = await standing(kept, path => reals.get(path), maxLineBytes)
      const isShown = ({ isMatch }: { readonly isMatch: boolean }): boolean => isMatch
      const shown = sound.reduce((sum, file) => sum + file.lines.filter(isShown).length, 0)
      return { files: sound, matches, totalFiles, shown, vanished: kept.length - sound.length }
    },
  }
}

function files(look: Look, { mode, offset, limit }: GrepQuery): Collecting {
  const kept: { path: string; count?: number; lines: readonly [] }[] = []
  const find = fittingLast(look)
  let [matches, totalFiles] = [0, 0]
  const add = (printed: string, count?: number): boolean => {
    const path = find(printed)
    if (path === undefined) return true
    matches += count ?? 0
    const isWanted = totalFiles >= offset && kept.length < limit
    if (isWanted) kept.push({ path: path.shown, lines: [], ...(count !== undefined && { count }) })
    totalFiles++
    return true
  }
  const reader = mode === 'count' ? new CountReader(add) : new PathReader(path => add(path))
  return {
    args: [mode === 'count' ? '--count' : '--files-with-matches'],
    push: bytes => void reader.push(bytes),
    found: () => ({ files: kept, matches, totalFiles, shown: kept.length }),
  }
}
