import { SearchError } from './errors.ts'
import { fitsName, readName } from './name-pattern.ts'
import type { NamePattern } from './name-pattern.ts'

/** A glob taken apart; `/` separates, whatever the system. */
export interface GlobPattern {
  /** The folders it begins with, as they are written: '' for none, else relative or absolute. */
  readonly base: string
  /** Names in the dialect of ripgrep that all matches bear, for a first choice; undefined where it takes no such glob. */
  readonly names: readonly string[] | undefined
  /** Whether a path below `base` fits. Takes time proportional to the lengths, whatever the pattern. */
  matches(path: string): boolean
}

/** Any number of folders, also none. */
const anyFolders = Symbol('any folders')
type Step = NamePattern | typeof anyFolders

const maxAlternatives = 256
const special = /[*?[\]{}\\]/
const plainName = /^[\w.*?@+ -]+$/

/**
 * Reads a glob: `*` and `?` within a name, `**` for folders, `[a-z]`, `{a,b}`, `\` before what is meant as it stands. One
 * without a slash fits names at any depth. A name that equals its part of the pattern letter by letter fits too, so
 * that folders like `[id]` can be named.
 */
export function readGlob(text: string): GlobPattern {
  if (text.trim() === '') throw invalid(text, 'is blank')
  if (text.startsWith('!')) throw invalid(text, 'begins with !, and there is no search for what does not fit')
  const whole = text.replace(/^(\.\/+)+(?=.)/, '')
  const { base, rest } = splitBase(whole.endsWith('/') ? `${whole}**` : whole)
  const alternatives = expand(rest).map(alternative => alternative.split('/').filter(name => name !== ''))
  const isNameOnly = base === '' && !rest.includes('/')
  const fail = (reason: string): SearchError => invalid(text, reason)
  const patterns = alternatives.map((names): readonly Step[] => {
    const steps = names.map((name): Step => (name === '**' ? anyFolders : readName(name, fail)))
    // Folders at the end stand for what is in them.
    if (steps.at(-1) === anyFolders) steps.push(readName('*', fail))
    return isNameOnly ? [anyFolders, ...steps] : steps
  })
  const lasts = alternatives.map(names => names.at(-1) ?? '')
  return {
    base,
    names: lasts.every(name => plainName.test(name) && name !== '**') ? lasts : undefined,
    matches: path => {
      const names = path.split('/')
      return patterns.some(steps => fits(steps, names))
    },
  }
}

/** The leading folders without anything special, and what follows them. */
function splitBase(text: string): { readonly base: string; readonly rest: string } {
  const parts = text.split('/')
  const last = parts.length - 1
  const found = parts.findIndex((part, index) => index === last || special.test(part))
  const base = parts.slice(0, found).join('/')
  return { base: base === '' && found > 0 ? '/' : base, rest: parts.slice(found).join('/') }
}

/** The pattern once for each choice of its braces. */
function expand(text: string): string[] {
  const open = indexOutside(text, 0, '{')
  if (open === -1) {
    if (indexOutside(text, 0, '}') !== -1) throw invalid(text, 'closes a } that it does not open')
    return [text]
  }
  const choices: string[] = []
  let depth = 0
  let from = open + 1
  for (let at = open; at !== -1; at = indexOutside(text, at + 1, '{},')) {
    const mark = text.charAt(at)
    if (mark === '{') depth++
    else if (mark === '}') depth--
    if ((mark === ',' && depth === 1) || depth === 0) {
      choices.push(text.substring(from, at))
      from = at + 1
    }
    if (depth === 0) break
  }
  if (depth > 0) throw invalid(text, 'opens a { that it does not close')
  const [head, tail] = [text.substring(0, open), text.substring(from)]
  const all = choices.flatMap(choice => expand(head + choice + tail))
  if (all.length > maxAlternatives) throw invalid(text, `has more than ${maxAlternatives} alternatives`)
  return all
}

/** Where the first of `marks` stands that no \ is before and no class is around; -1 = nowhere. */
function indexOutside(text: string, from: number, marks: string): number {
  for (let at = from; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '\\') at++
    else if (marks.includes(char)) return at
    else if (char === '[') at = Math.max(at, text.indexOf(']', at + 2))
  }
  return -1
}

/** Where it does not fit, only the last `**` can be tried with more folders: an earlier one would gain nothing. */
function fits(steps: readonly Step[], names: readonly string[]): boolean {
  let [step, name] = [0, 0]
  let [retryStep, retryName] = [-1, 0]
  while (name < names.length) {
    const wanted = steps[step]
    if (wanted === anyFolders) {
      retryStep = step++
      retryName = name
      continue
    }
    if (wanted !== undefined && fitsName(wanted, names[name] ?? '')) {
      step++
      name++
      continue
    }
    if (retryStep === -1) return false
    step = retryStep + 1
    name = ++retryName
  }
  while (steps[step] === anyFolders) step++
  return step === steps.length
}

function invalid(text: string, reason: string): SearchError {
  return new SearchError('SEARCH_INVALID_PATTERN', `the glob "${text}" ${reason}`)
}
