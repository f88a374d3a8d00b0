import { hasHarmlessSurroundings, hasPlainWords } from './harmless.ts'
import { isPlainRepository } from './git-place.ts'
import { readsOnly, takesAnyWord } from './read-only-programs.ts'
import { programOf } from './program.ts'
import type { ShellCommand, ShellProgram } from './program.ts'

export interface ReadOnlyOptions {
  /**
   * The session's folder, where it is the one the command runs in. Without it no git command counts as reading: a
   * repository from elsewhere may name programs that git runs.
   */
  readonly cwd?: string | undefined
}

/**
 * Whether `program` surely changes nothing, opens no connection and starts nothing that does: known programs with words
 * known to read only. Looks at the place of the repository where git is used.
 */
export function isReadOnly(program: ShellProgram | undefined, options: ReadOnlyOptions = {}): boolean {
  if (program === undefined || !program.isComplete || program.commands.length === 0) return false
  const staysThere = program.commands.every(({ words }) => words[0] !== 'cd' || words[1] === options.cwd)
  const place = staysThere ? options : {}
  return program.commands.every(command => isReadOnlyCommand(command, place))
}

export function isReadOnlyCommand(command: ShellCommand, { cwd }: ReadOnlyOptions = {}): boolean {
  if (command.isBackground || !hasHarmlessSurroundings(command)) return false
  if (command.words.length === 0) return true
  if (!hasPlainWords(command) && !takesAnyWord(command)) return false
  if (!readsOnly(command)) return false
  const isAtWork = programOf(command) === 'git' && command.words.length > 1
  return !isAtWork || (cwd !== undefined && isPlainRepository(cwd))
}
