import { foldPunctuation } from './lines.ts'
import type { Line } from './lines.ts'

/** A place that resembles the text that was looked for. */
export interface NearPlace {
  /** Of its first line, from 1. */
  readonly line: number
  readonly lines: readonly string[]
}

const maxPlaces = 3
const maxLinesCompared = 20_000
const maxLineLength = 300
/** Lines that share fewer of their letter pairs do not resemble each other. */
const leastLikeness = 0.5

/** At most three places, the best first. */
export function nearestPlaces(
  text: string,
  lines: readonly Line[],
  old: readonly string[],
): readonly NearPlace[] {
  const sought = old.at(-1) === '' && old.length > 1 ? old.slice(0, -1) : old
  const normal = lines
    .slice(0, maxLinesCompared)
    .map(line => normalise(text.slice(line.start, Math.min(line.end, line.start + maxLineLength))))
  const wanted = sought.map(line => normalise(line.slice(0, maxLineLength)))
  const scores = scoreEqualLines(normal, wanted)
  if (scores.size === 0) scoreLikeLines(normal, wanted, scores)
  return [...scores]
    .toSorted((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, maxPlaces)
    .map(([start]) => ({
      line: start + 1,
      lines: lines.slice(start, start + sought.length).map(line => text.slice(line.start, line.end)),
    }))
}

/** By start line: the length of all lines that stand at the same place in both. */
function scoreEqualLines(normal: readonly string[], wanted: readonly string[]): Map<number, number> {
  const places = new Map<string, number[]>()
  for (const [index, line] of wanted.entries()) {
    if (line.length < 3) continue
    const known = places.get(line) ?? []
    if (known.length < 8) places.set(line, [...known, index])
  }
  const scores = new Map<number, number>()
  for (const [at, line] of normal.entries()) {
    for (const index of places.get(line) ?? []) {
      const start = Math.max(0, at - index)
      scores.set(start, (scores.get(start) ?? 0) + line.length)
    }
  }
  return scores
}

/** The line that most resembles the longest one wanted. */
function scoreLikeLines(
  normal: readonly string[],
  wanted: readonly string[],
  scores: Map<number, number>,
): void {
  const longest = wanted.reduce((best, line) => (line.length > best.length ? line : best), '')
  const pairs = pairsOf(longest)
  if (pairs.size === 0) return
  for (const [at, line] of normal.entries()) {
    const others = pairsOf(line)
    let shared = 0
    for (const pair of others) if (pairs.has(pair)) shared++
    const likeness = (2 * shared) / (pairs.size + others.size)
    const start = Math.max(0, at - wanted.indexOf(longest))
    if (likeness >= leastLikeness) scores.set(start, Math.max(scores.get(start) ?? 0, likeness))
  }
}

function pairsOf(line: string): Set<string> {
  const pairs = new Set<string>()
  for (let at = 0; at + 1 < line.length; at++) pairs.add(line.slice(at, at + 2))
  return pairs
}

function normalise(line: string): string {
  return foldPunctuation(line).normalize('NFC').replace(/\s+/g, ' ').trim().toLowerCase()
}
