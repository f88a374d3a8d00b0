import { mergeLines, reindent } from './edit-merge.ts'
import { nearestPlaces } from './edit-nearest.ts'
import type { NearPlace } from './edit-nearest.ts'
import { keptLines } from './line-diff.ts'
import {
  foldPunctuation,
  lineAt,
  linesOf,
  splitLines,
  trimRight,
  withLineFeeds,
  withSignsOf,
} from './lines.ts'
import type { Line } from './lines.ts'
import type { FsEditMatch, FsEditRequest } from './service.ts'

/** Puts `text` in place of the offsets `start`…`end` (exclusive). */
export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Line numbers start at 1. */
export type EditPlan =
  | { readonly kind: 'replace'; readonly match: FsEditMatch; readonly splices: readonly Splice[] }
  | { readonly kind: 'ambiguous'; readonly match: FsEditMatch; readonly lines: readonly number[] }
  /** The new text is there already. */
  | { readonly kind: 'applied'; readonly line: number }
  | { readonly kind: 'missing'; readonly near: readonly NearPlace[] }

interface Hit {
  readonly start: number
  readonly end: number
}

/** Shorter text may stand somewhere by chance, so it never counts as "already applied". */
const tellingText = /(\S\s*){4}/
const tellingAddition = /[\p{L}\p{N}].*[\p{L}\p{N}]/su

/**
 * Decides what an edit does to `text`, without doing it.
 *
 * The old text is looked for exactly, but for line ends; then without blanks at line ends; then with plain quotes and
 * dashes; then line by line under another indentation. The first way that finds something decides, and a hit that is
 * not the only one is refused unless all are meant. Lines of the old text that the new one repeats keep the bytes they
 * have in the file, and new lines take the line ends of those they replace or follow.
 */
export function planEdit(text: string, request: FsEditRequest): EditPlan {
  const literal = planLiteral(text, request)
  if (literal !== undefined) return literal

  const lines = linesOf(text)
  const old = splitLines(request.oldString)
  const plain = viewOf(text, lines, line => line)
  const exact = findIn(plain, old, line => line)
  if (exact.length > 0) return planHits(text, lines, request, { match: 'exact', hits: exact })
  const last = planLastLine(text, plain, lines, request) ?? findApplied(plain.text, request)
  if (last !== undefined) return last

  const folded = (line: string): string => trimRight(foldPunctuation(line))
  for (const [match, normalise] of [
    ['trailing-space', trimRight],
    ['punctuation', folded],
  ] as const) {
    const hits = findIn(viewOf(text, lines, normalise), old, normalise)
    if (hits.length > 0) return planHits(text, lines, request, { match, hits })
  }
  const indented = findIndented(text, lines, old)
  if (indented.length > 0) return planHits(text, lines, request, { match: 'indentation', hits: indented })
  return { kind: 'missing', near: nearestPlaces(text, lines, old) }
}

/** `text` with all of `splices`, which stand in order and do not overlap. */
export function applySplices(text: string, splices: readonly Splice[]): string {
  const parts: string[] = []
  let at = 0
  for (const { start, end, text: inserted } of splices) {
    parts.push(text.slice(at, start), inserted)
    at = end
  }
  return parts.join('') + text.slice(at)
}

/** Old text that stands there byte by byte, where no line end needs a choice: in a file of LF, or with its CRs named. */
function planLiteral(text: string, request: FsEditRequest): EditPlan | undefined {
  const { oldString, newString } = request
  const namesReturns = oldString.includes('\r')
  if (!namesReturns && text.includes('\r')) return undefined
  const starts = occurrences(text, oldString)
  if (starts.length === 0) return undefined
  const replacement = namesReturns ? newString : withLineFeeds(newString)
  const splices = starts.map(start => ({ start, end: start + oldString.length, text: replacement }))
  return decide(text, request, { match: 'exact', splices })
}

/** Old text that ends in a line end which the file's last line does not have; the file goes on without it. */
function planLastLine(
  text: string,
  plain: View,
  lines: readonly Line[],
  request: FsEditRequest,
): EditPlan | undefined {
  const [old, fresh] = [withLineFeeds(request.oldString), withLineFeeds(request.newString)]
  const oldString = old.slice(0, -1)
  if (oldString === '' || !old.endsWith('\n') || !plain.text.endsWith(oldString)) return undefined
  const newString = fresh.endsWith('\n') ? fresh.slice(0, -1) : fresh
  const start = plain.toRaw(plain.text.length - oldString.length)
  const hits = [{ start, end: text.length }]
  return planHits(text, lines, { ...request, oldString, newString }, { match: 'exact', hits })
}

function planHits(
  text: string,
  lines: readonly Line[],
  request: FsEditRequest,
  found: { readonly match: FsEditMatch; readonly hits: readonly Hit[] },
): EditPlan {
  const old = splitLines(request.oldString)
  const given = splitLines(request.newString)
  const kept = keptLines(old, given)
  const splices = found.hits.map(({ start, end }) => {
    const raw = text.slice(start, end)
    const fresh = given.map(line => withSignsOf(raw, request.oldString, line))
    const isIndented = found.match === 'indentation'
    const written = (isIndented ? reindent(old, splitLines(raw), fresh) : undefined) ?? fresh
    const [after, before] = [lineAt(lines, end), lineAt(lines, start) - 1].map(index => {
      const line = lines[index]
      return line === undefined ? '' : text.slice(line.end, line.next)
    })
    return { start, end, text: mergeLines(raw, written, kept, { after, before }) }
  })
  return decide(text, request, { match: found.match, splices })
}

function decide(
  text: string,
  request: FsEditRequest,
  found: { readonly match: FsEditMatch; readonly splices: readonly Splice[] },
): EditPlan {
  const { match, splices } = found
  const isAmbiguous = splices.length > 1 && !request.replaceAll
  if (!isAmbiguous && !isApplied(text, splices, request)) return { kind: 'replace', match, splices }
  const lines = linesOf(text)
  const numbers = splices.map(splice => lineAt(lines, splice.start) + 1)
  return isAmbiguous
    ? { kind: 'ambiguous', match, lines: numbers }
    : { kind: 'applied', line: numbers[0] ?? 1 }
}

function isApplied(text: string, splices: readonly Splice[], request: FsEditRequest): boolean {
  if (splices.every(splice => splice.text === text.slice(splice.start, splice.end))) return true
  const [hit] = splices
  return hit !== undefined && !request.replaceAll && isInsideNew(text, hit, request)
}

/** True where the old text is found as a part of the whole new text: the edit only adds, and has been made. */
function isInsideNew(text: string, hit: Hit, request: FsEditRequest): boolean {
  const [old, fresh] = [withLineFeeds(request.oldString), withLineFeeds(request.newString)]
  if (!fresh.includes(old) || !tellingAddition.test(fresh.replace(old, () => ''))) return false
  const reach = fresh.length * 2
  const before = withLineFeeds(text.slice(Math.max(0, hit.start - reach), hit.start))
  const around = before + withLineFeeds(text.slice(hit.start, hit.end + reach))
  return occurrences(fresh, old).some(offset => around.startsWith(fresh, before.length - offset))
}

function findApplied(text: string, { newString }: FsEditRequest): EditPlan | undefined {
  if (!tellingText.test(newString)) return undefined
  const wanted = withLineFeeds(newString)
  const exact = text.indexOf(wanted)
  // Folding keeps lengths, so the place is the same.
  const at = exact === -1 ? foldPunctuation(text).indexOf(foldPunctuation(wanted)) : exact
  return at === -1 ? undefined : { kind: 'applied', line: lineAt(linesOf(text), at) + 1 }
}

/** `text` with each line normalised. Normalising only shortens a line at its end, so columns stay the same. */
interface View {
  readonly text: string
  toRaw(offset: number): number
}

function viewOf(text: string, lines: readonly Line[], normalise: (line: string) => string): View {
  const parts = lines.map(line => normalise(text.slice(line.start, line.end)))
  const starts: Line[] = []
  let at = 0
  for (const part of parts) {
    starts.push({ start: at, end: at + part.length, next: at + part.length + 1 })
    at += part.length + 1
  }
  const toRaw = (offset: number): number => {
    const index = lineAt(starts, offset)
    return (lines[index]?.start ?? 0) + offset - (starts[index]?.start ?? 0)
  }
  return { text: parts.join('\n'), toRaw }
}

function findIn(view: View, old: readonly string[], normalise: (line: string) => string): Hit[] {
  const needle = old.map(normalise).join('\n')
  const last = old.at(-1) ?? ''
  // Blanks that were taken from the end stood for the end of the line.
  const mustEndLine = normalise(last).length < last.length
  if (mustEndLine && needle.trim() === '') return []
  return occurrences(view.text, needle)
    .filter(start => !mustEndLine || '\n'.startsWith(view.text.charAt(start + needle.length)))
    .map(start => ({ start: view.toRaw(start), end: view.toRaw(start + needle.length) }))
}

/** Whole lines that are equal but for their indentation, where each old indentation stands for exactly one other. */
function findIndented(text: string, lines: readonly Line[], old: readonly string[]): Hit[] {
  const endsLine = old.length > 1 && old.at(-1) === ''
  const wanted = (endsLine ? old.slice(0, -1) : old).map(bare)
  if (wanted.every(line => line === '')) return []
  const there = lines.map(line => bare(text.slice(line.start, line.end)))
  const hits: Hit[] = []
  for (let at = 0; at + wanted.length <= there.length; at++) {
    if (!wanted.every((line, index) => line === there[at + index])) continue
    const [from, to] = [lines[at], lines[at + wanted.length - 1]]
    if (from === undefined || to === undefined || (endsLine && to.next === to.end)) continue
    const hit = { start: from.start, end: endsLine ? to.next : to.end }
    if (reindent(old, splitLines(text.slice(hit.start, hit.end)), []) === undefined) continue
    hits.push(hit)
    at += wanted.length - 1
  }
  return hits
}

function bare(line: string): string {
  return foldPunctuation(line).normalize('NFC').trim()
}

/** Non-overlapping, in order. */
function occurrences(text: string, needle: string): number[] {
  const found: number[] = []
  if (needle === '') return found
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + needle.length)) found.push(at)
  return found
}
