import type { Loss } from './loss.ts'
import type { ShellCommand } from './program.ts'
import { shells } from './wrappers.ts'

/** Options of interpreters behind which code stands. */
const codeOptions: Readonly<Record<string, RegExp>> = {
  python: /^-[A-Za-z]*c/,
  python2: /^-[A-Za-z]*c/,
  python3: /^-[A-Za-z]*c/,
  node: /^(?:-[a-z]*[ep]|--eval|--print)/,
  bun: /^(?:-[a-z]*[ep]|--eval|--print)/,
  deno: /^eval$/,
  perl: /^-[A-Za-z]*[eE]/,
  ruby: /^-[A-Za-z]*e/,
  php: /^-r/,
}

/** Calls that remove or replace files, or start a program that may. */
const destroying = new RegExp(
  [
    String.raw`\bunlink|rmtree|\brm(?:dir)?(?:Sync)?\b|\bremove_tree|removeSync|os\.remove|Deno\.remove|FileUtils|File\.delete`,
    String.raw`\brename|os\.replace|shutil\.|copyFile|cpSync|\btruncate`,
    String.raw`write(?:_text|_bytes|File|TextFile)|createWriteStream|File\.write|file_put_contents`,
    String.raw`\bopen\b[^\n]*['"]\+?[>wx]|\.open\(\s*['"]w`,
    String.raw`\bsystem\b|\bexec|\bspawn|subprocess|\bpopen|${'`'}`,
  ].join('|'),
)

/** Programs that do what a file of the project says, and names under which such files remove things. */
const runners = new Set(
  'make gmake just task rake npm pnpm yarn bun gradle gradlew mvn mvnw ant cargo dotnet mix lein sbt bazel ninja'.split(
    ' ',
  ),
)
const cleaning = /(?:clean|purge|wipe|nuke|reset|destroy)/i

/** What a deed of a project may destroy, as far as its name tells, and what a shell may that runs what is piped into it. */
export function deedLosses({ words, isPiped }: ShellCommand, program: string): readonly Loss[] {
  const isCleaning = runners.has(program) && words.slice(1).some(word => cleaning.test(word ?? ''))
  const isFed = isPiped && Object.hasOwn(shells, program)
  return isCleaning || isFed ? [{ kind: 'overwrite', paths: [undefined] }] : []
}

/** What code in the words or the input of an interpreter may destroy: nobody can tell which files. */
export function codeLosses({ words, redirections }: ShellCommand, program: string): readonly Loss[] {
  const option = Object.hasOwn(codeOptions, program) ? codeOptions[program] : undefined
  if (option === undefined) return []
  const hasCode = words.some(word => word !== undefined && option.test(word))
  const inputs = redirections.flatMap(({ text }) => text ?? [])
  const code = [...(hasCode ? words.slice(1) : []), ...inputs]
  const isAnyUnknown = hasCode && words.includes(undefined)
  const isDestroying = isAnyUnknown || code.some(each => each !== undefined && destroying.test(each))
  return isDestroying ? [{ kind: 'overwrite', paths: [undefined] }] : []
}
