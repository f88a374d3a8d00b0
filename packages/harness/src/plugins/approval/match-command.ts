import { widerAccesses } from '../../core/tools/index.ts'
import type { WiderAccess } from '../../core/tools/index.ts'
import { commandsOf, coversCommand, isReadOnlyCommand, prefixOf, programOf } from '../shell-command/index.ts'
import type { ShellCommand, ShellProgram } from '../shell-command/index.ts'
import type { CommandRule } from './events.ts'

/** `maybe` where only the shell can know. */
type Match = 'yes' | 'maybe' | 'no'

export interface Restriction<Rule> {
  readonly rule: Rule
  readonly match: 'yes' | 'maybe'
  /** Absent where the program cannot be read as a whole. */
  readonly part?: ShellCommand
}

/**
 * The rule among those that ask or deny which speaks of `program`: one that surely does, else one that may. Of what
 * cannot be read any of them may speak.
 */
export function restrictionOf<Rule extends CommandRule>(
  rules: readonly Rule[],
  program: ShellProgram | undefined,
): Restriction<Rule> | undefined {
  let perhaps: Restriction<Rule> | undefined
  const parts = program === undefined ? [] : commandsOf(program)
  for (const [index, part] of parts.entries()) {
    const isOpen = startsUnread(part, parts[index + 1])
    for (const rule of rules) {
      const spoken = restricts(rule, part)
      const match = spoken === 'no' && isOpen && mayStart(part, rule) ? 'maybe' : spoken
      if (match === 'yes') return { rule, match, part }
      if (match === 'maybe') perhaps ??= { rule, match, part }
    }
  }
  const [any] = rules
  if (perhaps !== undefined || any === undefined || program?.isComplete === true) return perhaps
  return { rule: any, match: 'maybe' }
}

/**
 * Finds more than a rule that allows does: whatever the program's folder is, with options between the words, and with
 * those of the rule anywhere.
 */
function restricts({ prefix: [program = '', ...rest] }: CommandRule, command: ShellCommand): Match {
  const { words } = command
  if (words.length === 0) return 'no'
  const name = programOf(command)
  if (name === undefined) return 'maybe'
  if (name.toLowerCase() !== baseName(program)) return 'no'
  const given = words.slice(1)
  if (rest.length > 0 && name === 'git' && given.some(word => /^(?:-c)?alias\./i.test(word ?? '')))
    return 'maybe'
  const matches = rest.filter(isOption).map(option => hasOption(option, given))
  matches.push(
    inOrder(
      rest.filter(word => !isOption(word)),
      given,
    ),
  )
  return (['no', 'maybe'] as const).find(match => matches.includes(match)) ?? 'yes'
}

const isOption = (word: string): boolean => /^-./.test(word)

/** Short options may stand together, and long ones with a value, or shortened. */
function hasOption(option: string, words: readonly (string | undefined)[]): Match {
  const letters = words.filter(word => word !== undefined && /^-[^-]/.test(word)).join('')
  const isThere = option.startsWith('--')
    ? words.some(word => {
        const said = word?.split('=')[0] ?? ''
        return said.length > 2 && option.startsWith(said)
      })
    : option.match(/[^-]/g)?.every(letter => letters.includes(letter)) === true
  if (isThere) return 'yes'
  return words.includes(undefined) ? 'maybe' : 'no'
}

/** Run what their words say, which then stands behind them where it can be read. */
const starters = new Set(
  (
    'eval source . exec command builtin env xargs timeout nice ionice nohup setsid stdbuf time watch flock sudo doas su ' +
    'chroot busybox toybox strace bash sh dash ash ksh mksh zsh trap parallel ssh script unshare nsenter setpriv ' +
    'runuser pkexec taskset chrt setarch linux32 linux64 prlimit ltrace valgrind perf systemd-run start-stop-daemon ' +
    'firejail proot fakeroot unbuffer dbus-run-session xvfb-run at batch entr fd fdfind npx pnpx bunx'
  ).split(' '),
)

/** Whether it starts another program that could not be told from its words. */
function startsUnread(part: ShellCommand, next: ShellCommand | undefined): boolean {
  const name = programOf(part)
  if (name === undefined || !starters.has(name) || isReadOnlyCommand(part)) return false
  return next === undefined || next.via.length <= part.via.length
}

/** Whether its words, options and texts among them, hold all words of the rule, or one that only the shell knows. */
function mayStart({ words }: ShellCommand, { prefix: [program = '', ...rest] }: CommandRule): boolean {
  if (words.includes(undefined)) return true
  const said = words.slice(1).flatMap(word => word?.split(/[\s;&|()<>{}'"`$=,]+/) ?? [])
  const isNamed = said.some(each => baseName(each) === baseName(program))
  return isNamed && rest.every(word => isOption(word) || said.includes(word))
}

function inOrder(prefix: readonly string[], words: readonly (string | undefined)[]): Match {
  const [wanted, ...laterWanted] = prefix
  if (wanted === undefined) return 'yes'
  if (words.length === 0) return 'no'
  const [word, ...later] = words
  if (word === undefined) return 'maybe'
  if (word === wanted) return inOrder(laterWanted, later)
  if (!/^[-+]/.test(word)) return 'no'
  // What follows an option may be its value.
  const matches = [inOrder(prefix, later), inOrder(prefix, later.slice(1))]
  return (['yes', 'maybe'] as const).find(match => matches.includes(match)) ?? 'no'
}

export interface Need {
  /** More than the mode gives. */
  readonly access: WiderAccess | undefined
  /** Whether what only reads needs no rule: so it is, unless the call asks for more than its mode gives. */
  readonly isReadingFree: boolean
  /** The session's folder, where the command runs in it. */
  readonly cwd: string | undefined
}

/** The rules that together allow all of `program`, or the parts that need one and have none. */
export function allowanceOf<Rule extends CommandRule>(
  rules: readonly Rule[],
  program: ShellProgram,
  need: Need,
): { readonly rules: readonly Rule[] } | { readonly uncovered: readonly ShellCommand[] } {
  const wide = rules.filter(rule => isWideEnough(rule, need.access))
  const parts = commandsOf(program)
  const place = parts.some(({ words }) => words[0] === 'cd') ? {} : { cwd: need.cwd }
  const uncovered: ShellCommand[] = []
  const used = new Set<Rule>()
  for (const part of parts) {
    const rule = wide.find(each => allows(each, part))
    const isFree = isIdle(part) || (need.isReadingFree && isReadOnlyCommand(part, place))
    if (rule !== undefined) used.add(rule)
    else if (!isFree) uncovered.push(part)
  }
  const isAllowed = uncovered.length === 0 && program.isComplete && used.size > 0
  return isAllowed ? { rules: [...used] } : { uncovered }
}

function isWideEnough({ access }: CommandRule, needed: WiderAccess | undefined): boolean {
  if (needed === undefined) return true
  return access !== undefined && widerAccesses.indexOf(access) >= widerAccesses.indexOf(needed)
}

function allows({ prefix, exact }: CommandRule, part: ShellCommand): boolean {
  return coversCommand(prefix, part) && (exact !== true || part.words.length === prefix.length)
}

/** Do nothing but print, wait or choose a folder. */
const idle = new Set([':', 'true', 'false', 'cd', 'pwd', 'echo', 'sleep'])

function isIdle(part: ShellCommand): boolean {
  const [first] = part.words
  return first !== undefined && idle.has(first) && coversCommand([first], part)
}

/** The rule that would allow `part`, and as little besides as one can; undefined where none can. */
export function ruleFor(part: ShellCommand, access: WiderAccess | undefined): CommandRule | undefined {
  const prefix = prefixOf(part)
  const words = part.words.filter(word => word !== undefined)
  const said: Pick<CommandRule, 'prefix' | 'exact'> =
    prefix === undefined ? { prefix: words, exact: true } : { prefix }
  const rule: CommandRule = { effect: 'allow', kind: 'command', ...said, ...(access && { access }) }
  return allows(rule, part) ? rule : undefined
}

function baseName(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1).toLowerCase()
}
