/** A word of a command: what it is, or what it begins with. */
export interface Argument {
  readonly value: string | undefined
  readonly stem: string
}

export interface Split {
  /** Short options one letter each, long ones whole. */
  readonly options: ReadonlySet<string>
  /** Of options that take one, by name. */
  readonly values: ReadonlyMap<string, Argument>
  readonly operands: readonly Argument[]
}

/**
 * Tells options from operands, in any order; those of `valued` take a value. What nobody knows is an operand, so that no
 * file is missed.
 */
export function split(args: readonly Argument[], valued: readonly string[] = []): Split {
  const options = new Set<string>()
  const values = new Map<string, Argument>()
  const operands: Argument[] = []
  const end = args.findIndex(({ value }) => value === '--')
  const before = end < 0 ? args : args.slice(0, end)
  for (let at = 0; at < before.length; at++) {
    const arg = before[at]
    if (arg?.value === undefined || !arg.value.startsWith('-') || arg.value === '-') {
      if (arg !== undefined) operands.push(arg)
      continue
    }
    const { names, given } = readOption(arg.value, valued)
    for (const name of names) options.add(name)
    const last = names.at(-1) ?? ''
    if (!valued.includes(last)) continue
    const value = given === '' ? before[++at] : { value: given, stem: given }
    if (value !== undefined) values.set(last, value)
  }
  return { options, values, operands: [...operands, ...(end < 0 ? [] : args.slice(end + 1))] }
}

/** The options of one word, and the value that stands in it too. */
function readOption(
  word: string,
  valued: readonly string[],
): { readonly names: readonly string[]; readonly given: string } {
  if (word.startsWith('--')) {
    const at = word.indexOf('=')
    return at < 0 ? { names: [word], given: '' } : { names: [word.slice(0, at)], given: word.slice(at + 1) }
  }
  const letters = Array.from(word.slice(1))
  const at = letters.findIndex(letter => valued.includes(letter))
  if (at < 0) return { names: letters, given: '' }
  return { names: letters.slice(0, at + 1), given: letters.slice(at + 1).join('') }
}
