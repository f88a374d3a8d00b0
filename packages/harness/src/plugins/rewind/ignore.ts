import { joinRaw, parentOf } from './paths.ts'
import type { RawPath } from './paths.ts'

interface Rule {
  readonly negated: boolean
  readonly foldersOnly: boolean
  /** Matched against the name alone, not the path below the rules' folder. */
  readonly byName: boolean
  matches(text: string): boolean
}

/** The rules of one `.gitignore`, the last first: the first that matches decides. */
export type IgnoreRules = readonly Rule[]

/** Reads rules as git does. `text` has one character a byte. */
export function parseIgnoreRules(text: string): IgnoreRules {
  const lines = text.replace(/^\xef\xbb\xbf/, '').split('\n')
  return lines.flatMap(line => ruleOf(line.replace(/\r$/, '')) ?? []).toReversed()
}

/**
 * Which paths of a workspace are left out. Rules of a nearer folder win; below a folder that is ignored everything is.
 * `rulesOf` gives the rules that stand in a folder, '' being the workspace.
 */
export class Ignore {
  readonly #rulesOf: (folder: RawPath) => IgnoreRules | undefined
  readonly #outside: IgnoreRules

  constructor(rulesOf: (folder: RawPath) => IgnoreRules | undefined, outside: IgnoreRules = []) {
    this.#rulesOf = rulesOf
    this.#outside = outside
  }

  /** Whether `path` itself is ignored, as long as no folder that it is in is. */
  matches(path: RawPath, isFolder: boolean): boolean {
    const name = path.slice(path.lastIndexOf('/') + 1)
    for (let folder = parentOf(path); ; folder = parentOf(folder)) {
      const below = folder === '' ? path : path.slice(folder.length + 1)
      const verdict = judge(this.#rulesOf(folder), { name, below, isFolder })
      if (verdict !== undefined) return verdict
      if (folder === '') return judge(this.#outside, { name, below, isFolder }) ?? false
    }
  }

  /** Whether a file is ignored, itself or with a folder it is in. */
  covers(path: RawPath): boolean {
    let folder = ''
    for (const part of path.split('/').slice(0, -1)) {
      folder = joinRaw(folder, part)
      if (this.matches(folder, true)) return true
    }
    return this.matches(path, false)
  }
}

interface Subject {
  readonly name: string
  readonly below: string
  readonly isFolder: boolean
}

function judge(rules: IgnoreRules | undefined, { name, below, isFolder }: Subject): boolean | undefined {
  if (rules === undefined) return undefined
  for (const rule of rules) {
    if (rule.foldersOnly && !isFolder) continue
    if (rule.matches(rule.byName ? name : below)) return !rule.negated
  }
  return undefined
}

function ruleOf(line: string): Rule | undefined {
  if (line.startsWith('#')) return undefined
  let pattern = withoutTrailingSpaces(line)
  const negated = pattern.startsWith('!')
  if (negated) pattern = pattern.slice(1)
  const foldersOnly = pattern.endsWith('/')
  if (foldersOnly) pattern = pattern.slice(0, -1)
  if (pattern === '') return undefined
  const byName = !pattern.includes('/')
  if (pattern.startsWith('/')) pattern = pattern.slice(1)
  return { negated, foldersOnly, byName, matches: matcherOf(pattern) }
}

/** A space stays where a backslash stands before it. */
function withoutTrailingSpaces(line: string): string {
  let end = line.length
  while (end > 0 && line[end - 1] === ' ' && !isEscaped(line, end - 1)) end--
  return line.slice(0, end)
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0
  while (text[at - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1
}

function matcherOf(pattern: string): (text: string) => boolean {
  if (!/[*?[\\]/.test(pattern)) return text => text === pattern
  const source = globSource(pattern)
  if (source === undefined) return () => false
  const regexp = new RegExp(`^${source}$`, 's')
  return text => regexp.test(text)
}

/** Undefined for a pattern that is broken and matches nothing. */
function globSource(pattern: string): string | undefined {
  let source = ''
  for (let at = 0; at < pattern.length;) {
    const char = pattern.charAt(at)
    if (char === '*') {
      const { text, next } = starsAt(pattern, at)
      source += text
      at = next
    } else if (char === '[') {
      const set = setAt(pattern, at)
      if (set === undefined) return undefined
      source += set.text
      at = set.next
    } else if (char === '\\') {
      if (at + 1 >= pattern.length) return undefined
      source += literal(pattern.charAt(at + 1))
      at += 2
    } else {
      source += char === '?' ? '[^/]' : literal(char)
      at++
    }
  }
  return source
}

interface Piece {
  readonly text: string
  readonly next: number
}

/** Two stars that stand alone between slashes are any folders; any others are a single one. */
function starsAt(pattern: string, start: number): Piece {
  let next = start
  while (pattern[next] === '*') next++
  const isWhole = next - start > 1 && (start === 0 || pattern[start - 1] === '/')
  if (!isWhole) return { text: '[^/]*', next }
  if (next === pattern.length) return { text: '.*', next }
  if (pattern[next] === '/') return { text: '(?:.*/)?', next: next + 1 }
  return { text: '[^/]*', next }
}

function setAt(pattern: string, start: number): Piece | undefined {
  let at = start + 1
  const isNegated = pattern[at] === '!' || pattern[at] === '^'
  if (isNegated) at++
  let inside = ''
  for (let isFirst = true; isFirst || pattern[at] !== ']'; isFirst = false) {
    const item = at < pattern.length ? (classAt(pattern, at) ?? rangeAt(pattern, at)) : undefined
    if (item === undefined) return undefined
    inside += item.text
    at = item.next
  }
  const text = isNegated ? `(?!/)[^${inside}]` : inside === '' ? '(?!)' : `(?!/)[${inside}]`
  return { text, next: at + 1 }
}

function classAt(pattern: string, at: number): Piece | undefined {
  const [whole, name = ''] = /^\[:(\w*):\]/.exec(pattern.slice(at)) ?? []
  const inside = Object.hasOwn(classes, name) ? classes[name] : undefined
  return whole === undefined || inside === undefined ? undefined : { text: inside, next: at + whole.length }
}

function rangeAt(pattern: string, at: number): Piece | undefined {
  const low = memberAt(pattern, at)
  if (low === undefined) return undefined
  const { next } = low
  const isRange = pattern[next] === '-' && next + 1 < pattern.length && pattern[next + 1] !== ']'
  const high = isRange ? memberAt(pattern, next + 1) : low
  if (high === undefined) return undefined
  const text = low.text <= high.text ? `${member(low.text)}-${member(high.text)}` : ''
  return { text, next: high.next }
}

function memberAt(pattern: string, at: number): Piece | undefined {
  if (pattern[at] !== '\\') return { text: pattern.charAt(at), next: at + 1 }
  return at + 1 < pattern.length ? { text: pattern.charAt(at + 1), next: at + 2 } : undefined
}

function member(char: string): string {
  return `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
}

function literal(char: string): string {
  return /\w/.test(char) ? char : member(char)
}

const classes: Readonly<Record<string, string>> = {
  alnum: 'A-Za-z0-9',
  alpha: 'A-Za-z',
  blank: ' \\t',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '\\x21-\\x7e',
  lower: 'a-z',
  print: '\\x20-\\x7e',
  punct: '\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e',
  space: ' \\t\\n\\v\\f\\r',
  upper: 'A-Z',
  xdigit: '0-9A-Fa-f',
}
