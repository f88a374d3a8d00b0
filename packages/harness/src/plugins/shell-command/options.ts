/** The options of a program that decide where its operands begin. */
export interface OptionSpec {
  /** Letters of options without a value. */
  readonly flags?: string
  /** Letters of options with one. */
  readonly values?: string
  readonly longFlags?: readonly string[]
  /** Long options whose value stands behind `=` or in the next word. */
  readonly longValues?: readonly string[]
}

export interface ReadOptions {
  /** By letter or long name, in order; a flag has no value. */
  readonly options: readonly (readonly [name: string, value: string | undefined])[]
  /** The index of the first word that is no option. */
  readonly next: number
}

/** Undefined where an option is unknown to `spec`, or a word before the first operand is. */
export function readOptions(
  words: readonly (string | undefined)[],
  spec: OptionSpec,
  start = 1,
): ReadOptions | undefined {
  const options: [string, string | undefined][] = []
  let at = start
  while (at < words.length) {
    const word = words[at]
    if (word === undefined) return undefined
    at++
    if (word === '--') return { options, next: at }
    if (!word.startsWith('-') || word === '-') return { options, next: at - 1 }
    const isLong = word.startsWith('--')
    const read = isLong ? readLong(word, words[at], spec) : readCluster(word, words[at], spec)
    if (read === undefined) return undefined
    options.push(...read.options)
    if (read.usedNext) at++
  }
  return { options, next: at }
}

interface ReadOne {
  readonly options: readonly [string, string | undefined][]
  readonly usedNext: boolean
}

function readLong(word: string, following: string | undefined, spec: OptionSpec): ReadOne | undefined {
  const at = word.indexOf('=')
  const name = word.slice(2, at < 0 ? undefined : at)
  if (at < 0 && spec.longFlags?.includes(name) === true)
    return { options: [[name, undefined]], usedNext: false }
  if (spec.longValues?.includes(name) !== true) return undefined
  if (at >= 0) return { options: [[name, word.slice(at + 1)]], usedNext: false }
  return following === undefined ? undefined : { options: [[name, following]], usedNext: true }
}

function readCluster(word: string, following: string | undefined, spec: OptionSpec): ReadOne | undefined {
  const options: [string, string | undefined][] = []
  for (let at = 1; at < word.length; at++) {
    const letter = word[at] ?? ''
    if (spec.flags?.includes(letter) === true) {
      options.push([letter, undefined])
      continue
    }
    if (spec.values?.includes(letter) !== true) return undefined
    const rest = word.slice(at + 1)
    if (rest === '' && following === undefined) return undefined
    options.push([letter, rest === '' ? following : rest])
    return { options, usedNext: rest === '' }
  }
  return { options, usedNext: false }
}
