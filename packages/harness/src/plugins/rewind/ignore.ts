import { matcherOf } from './glob.ts'
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
