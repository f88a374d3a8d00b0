import { parseArgs } from 'node:util'
import { nearest } from '@dsh/harness/kernel'
import { usageError } from './errors.ts'
import type { Arguments, Command, CommandGroup } from './command.ts'

/** Sorts out what was typed after a command's name. Throws a usage error for what the command does not know. */
export function parseArguments(command: Command, argv: readonly string[]): Arguments {
  const options = withHelp(command)
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const values: Record<string, string | boolean> = {}
  const words: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional' && command.takesCommand === true) {
      words.push(...argv.slice(token.index))
      break
    }
    if (token.kind === 'positional') words.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName } = token
    if (!Object.hasOwn(options, name)) throw unknownOption(command, rawName)
    if (Object.hasOwn(values, name))
      throw usageError('REPEATED_OPTION', `${rawName} is given twice`, helpOf(command))
    values[name] = options[name]?.type === 'boolean' ? flag(command, token) : text(command, token)
  }
  if (values['help'] !== true) assertWords(command, words)
  return { values, words }
}

/** The command that `argv` begins with, and what follows it. Throws a usage error for an action the group has not. */
export function pickAction(
  group: CommandGroup,
  [word, ...rest]: readonly string[],
): { readonly command: Command; readonly rest: readonly string[] } {
  const names = group.actions.map(({ name }) => name.slice(group.name.length + 1))
  const command = group.actions[names.indexOf(word ?? '')]
  if (command !== undefined) return { command, rest }
  const what = word === undefined ? 'nothing' : `"${word}"${nearest(word, names)}`
  const list = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(names)
  throw usageError(
    'UNKNOWN_ACTION',
    `dsh ${group.name} does ${list}; found ${what}`,
    `dsh ${group.name} --help`,
  )
}

function assertWords({ name, words: taken, usage }: Command, words: readonly string[]): void {
  if (taken === undefined) return
  const missing = taken[words.length]
  if (missing !== undefined && !missing.startsWith('['))
    throw usageError('MISSING_WORD', `dsh ${name} needs ${missing}`, usage)
  if (words.length > taken.length)
    throw usageError('UNEXPECTED_WORD', `dsh ${name} takes no "${words[taken.length]}"`, usage)
}

interface Typed {
  readonly rawName: string
  readonly value: string | undefined
  readonly inlineValue: boolean | undefined
}

function helpOf(command: Command): string {
  return `dsh ${command.name} --help`
}

function withHelp(command: Command): Record<string, { type: 'string' | 'boolean'; short?: string }> {
  return { ...command.options, help: { type: 'boolean', short: 'h' } }
}

function flag(command: Command, { rawName, value }: Typed): true {
  if (value === undefined) return true
  throw usageError('UNEXPECTED_VALUE', `${rawName} takes no value, found "${value}"`, helpOf(command))
}

function text(command: Command, { rawName, value, inlineValue }: Typed): string {
  const isNextOption = inlineValue !== true && value !== undefined && /^-./.test(value)
  if (value !== undefined && value !== '' && !isNextOption) return value
  throw usageError('MISSING_VALUE', `${rawName} needs a value`, helpOf(command))
}

function unknownOption(command: Command, rawName: string): Error {
  const known = Object.entries(withHelp(command)).flatMap(([name, { short }]) =>
    rawName.startsWith('--') ? [`--${name}`] : short === undefined ? [] : [`-${short}`],
  )
  const hint = rawName.startsWith('--') ? nearest(rawName, known) : ''
  return usageError('UNKNOWN_OPTION', `dsh ${command.name} has no option ${rawName}${hint}`, helpOf(command))
}

/** What is said of a first word that is none of `commands`. */
export function unknownCommand(word: string, commands: readonly { readonly name: string }[]): Error {
  const isOption = word.startsWith('-')
  const known = isOption ? ['--help', '--version'] : [...commands.map(({ name }) => name), 'help', 'version']
  const hint = nearest(word, known)
  const what = isOption ? 'option' : 'command'
  // Whoever types a task alone is told the word that goes before it.
  const fix = isOption || hint !== '' ? 'dsh --help' : 'dsh run "what to do"\ndsh --help'
  return usageError(`UNKNOWN_${what.toUpperCase()}`, `dsh has no ${what} "${word}"${hint}`, fix)
}
