import type { ShellAssignment, ShellCommand, ShellRedirection } from './program.ts'

/** What starts a command as it is, and leaves nothing behind. */
const quietStarters = new Set([
  'timeout',
  'nice',
  'ionice',
  'stdbuf',
  'time',
  'command',
  'builtin',
  'env',
  'eval',
  'xargs',
  'bash',
  'sh',
  'dash',
  'ash',
])
/** Variables that no program takes for something to run or to read, or that only say how things look. */
const plainVariable =
  /^(?:[a-z_][a-z0-9_]*|[A-Z]|LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|TERM)$/
const configuring = /^(?:npm_config_|[a-z]+_proxy$|_$)/
const sinks = new Set(['/dev/null', '/dev/stdout', '/dev/stderr'])

/** Whether setting it changes nothing of what runs. */
function isPlainVariable({ name }: ShellAssignment): boolean {
  return plainVariable.test(name) && !configuring.test(name)
}

/** Whether it makes and changes no file, and opens no connection. */
function isHarmlessRedirection({ kind, target }: ShellRedirection): boolean {
  if (kind === 'duplicate' || kind === 'text') return true
  if (target === undefined || kind === 'both') return false
  return kind === 'read' ? !/^\/dev\/(?:tcp|udp)\//.test(target) : sinks.has(target)
}

/** Whether everything around the program and its words leaves the world as it is. */
export function hasHarmlessSurroundings({ assignments, redirections, via }: ShellCommand): boolean {
  return (
    assignments.every(isPlainVariable) &&
    redirections.every(isHarmlessRedirection) &&
    via.every(name => quietStarters.has(name.slice(name.lastIndexOf('/') + 1)))
  )
}

/** Whether a word is known, or surely no option. */
function isPlainWord(word: string | undefined, stem: string | undefined): boolean {
  return word !== undefined || (stem !== undefined && stem !== '' && !stem.startsWith('-'))
}

export function hasPlainWords({ words, stems }: ShellCommand): boolean {
  return words[0] !== undefined && words.every((word, index) => isPlainWord(word, stems[index]))
}
