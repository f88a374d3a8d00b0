import { readOptions } from './options.ts'
import type { ShellAssignment } from './program.ts'
import type { ReadWord } from './word.ts'
import { shellOptions, shells, wrappers } from './wrappers.ts'
import type { Wrapper } from './wrappers.ts'

/** Something that a command starts: a text for a shell, or the words of a program. */
type Start =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'words'
      readonly words: readonly ReadWord[]
      readonly assignments: readonly ShellAssignment[]
    }

export interface Unwrapped {
  readonly starts: readonly Start[]
  /** The command does nothing but start these. */
  readonly isTransparent: boolean
}

const unknownWord: ReadWord = { value: undefined, stem: '' }
const nothing: Unwrapped = { starts: [], isTransparent: false }
const systemFolders = /^\/(?:usr\/(?:local\/)?)?s?bin\/(?=[^/]+$)/

/** The name of a program of the system; any other path is kept. */
export function systemName(word: string): string {
  return word.replace(systemFolders, '')
}

/** What `words` start. */
export function unwrap(words: readonly ReadWord[]): Unwrapped {
  const [first] = words
  if (first?.value === undefined) return nothing
  const name = systemName(first.value)
  if (Object.hasOwn(shells, name)) return unwrapShell(words, shells[name]?.isOther === true)
  if (name === 'find' || name === 'fd' || name === 'fdfind') return unwrapFind(words)
  if (name === 'trap') return unwrapTrap(words)
  const wrapper = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined
  return wrapper === undefined ? nothing : unwrapWith(words, wrapper)
}

function unwrapWith(words: readonly ReadWord[], wrapper: Wrapper): Unwrapped {
  const values = words.map(
    ({ value, stem }) => value ?? (wrapper.takesVariables ? variableIn(stem) : undefined),
  )
  const read = readOptions(values, wrapper)
  if (read === undefined) return nothing
  let { next } = read
  const isAnyUnknown = values.slice(next, next + (wrapper.operands ?? 0)).includes(undefined)
  if (isAnyUnknown) return nothing
  next += wrapper.operands ?? 0
  // As env understands it: a lone dash empties the environment.
  if (wrapper.takesVariables === true && values[next] === '-') next++
  const assignments = wrapper.takesVariables === true ? variablesAt(words, next) : []
  const removed = read.options.filter(
    ([option]) => wrapper.takesVariables === true && isRemoval(option, wrapper),
  )
  const rest = words.slice(next + assignments.length)
  if (rest.length === 0) return nothing
  const isTransparent = wrapper.isMore !== true
  if (wrapper.operands === 1 && rest[0]?.value === '-c')
    return { starts: textStart([rest[1]]), isTransparent }
  if (wrapper.joins === true) {
    const starts = textStart(rest)
    return { starts, isTransparent: isTransparent && starts.length > 0 }
  }
  const all = [...removed.map(([, name]) => ({ name: name ?? '', value: undefined })), ...assignments]
  const inner = wrapper.addsWords === true ? withAdded(rest, read.options) : rest
  return { starts: [{ kind: 'words', words: inner, assignments: all }], isTransparent }
}

function isRemoval(option: string, { isMore }: Wrapper): boolean {
  return isMore !== true && (option === 'u' || option === 'unset')
}

function variablesAt(words: readonly ReadWord[], start: number): readonly ShellAssignment[] {
  const found: ShellAssignment[] = []
  for (const { value, stem } of words.slice(start)) {
    const name = variableIn(stem)?.slice(0, -1)
    if (name === undefined) break
    found.push({ name, value: value?.slice(name.length + 1) })
  }
  return found
}

/** The name of a variable that is set, with its sign. */
function variableIn(stem: string): string | undefined {
  return /^[A-Za-z_]\w*=/.exec(stem)?.[0]
}

/** xargs puts what it reads in place of a sign, or behind all. */
function withAdded(
  words: readonly ReadWord[],
  options: readonly (readonly [string, string | undefined])[],
): readonly ReadWord[] {
  const sign = options.findLast(([name]) => name === 'I' || name === 'replace')?.[1]
  return sign === undefined ? [...words, unknownWord] : words.map(word => withoutSign(word, sign))
}

function withoutSign(word: ReadWord, sign: string): ReadWord {
  const at = word.stem.indexOf(sign)
  return at < 0 ? word : { value: undefined, stem: word.stem.slice(0, at) }
}

function textStart(words: readonly (ReadWord | undefined)[]): readonly Start[] {
  const values = words.map(word => word?.value)
  return values.every(value => value !== undefined) ? [{ kind: 'text', text: values.join(' ') }] : []
}

function unwrapShell(words: readonly ReadWord[], isOther: boolean): Unwrapped {
  const values = words.map(({ value }) => value)
  const read = readOptions(values, shellOptions)
  if (read === undefined || !read.options.some(([name]) => name === 'c')) return nothing
  const starts = textStart([words[read.next]])
  return { starts, isTransparent: !isOther && starts.length > 0 }
}

/** Whether `words` start a shell that runs what it is given as input. */
export function runsInput(words: readonly ReadWord[]): boolean {
  const values = words.map(({ value }) => value)
  if (values[0] === undefined || !Object.hasOwn(shells, systemName(values[0]))) return false
  const read = readOptions(values, shellOptions)
  if (read === undefined || read.options.some(([name]) => name === 'c')) return false
  return read.next === values.length || read.options.some(([name]) => name === 's')
}

const findStarters = new Set(['-exec', '-execdir', '-ok', '-okdir', '-x', '-X', '--exec', '--exec-batch'])

function unwrapFind(words: readonly ReadWord[]): Unwrapped {
  const starts: Start[] = []
  for (let at = 1; at < words.length; at++) {
    if (!findStarters.has(words[at]?.value ?? '')) continue
    const rest = words.slice(at + 1)
    const end = rest.findIndex(
      ({ value }, index) => value === ';' || (value === '+' && rest[index - 1]?.value === '{}'),
    )
    const inner = (end < 0 ? rest : rest.slice(0, end)).map(word => withoutSign(word, '{}'))
    starts.push({ kind: 'words', words: inner, assignments: [] })
    at += inner.length
  }
  return { starts, isTransparent: false }
}

function unwrapTrap(words: readonly ReadWord[]): Unwrapped {
  const rest = words.slice(words[1]?.value === '--' ? 2 : 1)
  const [code] = rest
  if (rest.length < 2 || code?.value === undefined || code.value.startsWith('-')) return nothing
  return { starts: textStart([code]), isTransparent: false }
}
