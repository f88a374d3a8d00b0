import { fittingLast, lookAtIgnored, nameArgs } from './look.ts'
import type { Look } from './look.ts'
import { MatchCollector } from './matches.ts'
import { CountReader, LineReader, PathReader } from './records.ts'
import type { GrepMode, GrepValue } from './render.ts'
import type { Ripgrep } from './ripgrep.ts'

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

type Found = Pick<GrepValue, 'files' | 'matches' | 'totalFiles' | 'shown'>

/** Takes what the search program prints, and says at the end what came of it. */
interface Collecting {
  readonly args: readonly string[]
  push(bytes: Buffer): void
  found(): Found
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
  const found = collecting.found()
  const ignored =
    found.totalFiles === 0
      ? await lookAtIgnored(ripgrep, look, ['--files-with-matches', ...regexArgs(query)])
      : undefined
  return { mode, offset, ...found, isPartial: isStopped, unreadable, ...(ignored && { ignored }) }
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
  const reader = new LineReader(record => {
    const path = find(record.path)
    if (path !== undefined) collector.add(path.shown, record)
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
    found: () => ({
      files: collector.files,
      matches: collector.matches,
      totalFiles: collector.fileCount,
      shown: collector.kept,
    }),
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
