import { resolve } from 'node:path'
import { codeLosses, deedLosses } from './destructions-code.ts'
import { fileLosses, folderOf } from './destructions-files.ts'
import { gitLosses } from './destructions-git.ts'
import type { DestructionKind, Loss } from './loss.ts'
import type { ShellCommand, ShellProgram } from './program.ts'

/** What a command may destroy, if it is there. */
export interface Destruction {
  readonly kind: DestructionKind
  /** As it is written. */
  readonly command: string
  /** Absolute; where `isDeep` a folder stands for all below it, and `folder/*` for some of that. */
  readonly paths: readonly string[]
  readonly isDeep: boolean
  /** More than `paths` may be meant: only the shell can know. */
  readonly isOpen: boolean
  /** Lies in the repository that is meant, with all of its files where `paths` is empty. */
  readonly repository?: string
  /** Names of git that would point elsewhere, or nowhere. */
  readonly refs?: readonly string[]
}

/** What `program`, started in the absolute folder `cwd`, may destroy, in the order of its commands. */
export function destructionsOf(
  program: ShellProgram,
  { cwd }: { readonly cwd: string },
): readonly Destruction[] {
  let folders: Folders = { known: [cwd], isOpen: false }
  const found: Destruction[] = []
  for (const command of program.commands) {
    for (const loss of lossesOf(command)) found.push(toDestruction(loss, command, folders))
    folders = afterwards(command, folders)
  }
  return found
}

/** The folders that a command may run in. */
interface Folders {
  readonly known: readonly string[]
  /** Others are possible. */
  readonly isOpen: boolean
}

export function lossesOf(command: ShellCommand): readonly Loss[] {
  const overwritten = command.redirections
    .filter(({ kind }) => kind === 'write')
    .map(({ target, stem }) => target ?? folderOf(stem))
    .filter(target => target === undefined || !target.startsWith('/dev/'))
  const redirected: readonly Loss[] =
    overwritten.length === 0 ? [] : [{ kind: 'overwrite', paths: overwritten }]
  return [...redirected, ...ownLosses(command)]
}

function ownLosses(command: ShellCommand): readonly Loss[] {
  if (command.words.length === 0) return []
  // A function is known by its name, and may pass on to the program of that name.
  const name = command.words[0] ?? command.stems[0] ?? ''
  const program = name.slice(name.lastIndexOf('/') + 1)
  if (program === '') return [{ kind: 'overwrite', paths: [undefined] }]
  if (program === 'git') return gitLosses(command)
  return [...fileLosses(command, program), ...codeLosses(command, program), ...deedLosses(command, program)]
}

function toDestruction(loss: Loss, { text }: ShellCommand, folders: Folders): Destruction {
  const { kind, paths = [], isDeep = false, repository, refs } = loss
  const known = paths.filter(path => path !== undefined)
  const isRelative = known.some(path => !path.startsWith('/'))
  return {
    kind,
    command: text,
    paths: [...new Set(known.flatMap(path => folders.known.map(folder => resolve(folder, path))))],
    isDeep,
    isOpen: known.length < paths.length || (folders.isOpen && (isRelative || repository !== undefined)),
    ...(repository === undefined ? {} : { repository: resolve(folders.known.at(-1) ?? '/', repository) }),
    ...(refs === undefined ? {} : { refs }),
  }
}

/** Where later commands may run: a change of folder counts, and may not, as it may stand in a subshell. */
function afterwards({ words }: ShellCommand, { known, isOpen }: Folders): Folders {
  const [program, first] = words
  if ((program !== 'cd' && program !== 'pushd') || words.length === 1) return { known, isOpen }
  const target = first === '--' ? words[2] : first
  if (target === undefined || target.startsWith('-')) return { known, isOpen: true }
  return {
    known: [...new Set([...known, ...known.map(folder => resolve(folder, target))])].slice(0, 16),
    isOpen,
  }
}
