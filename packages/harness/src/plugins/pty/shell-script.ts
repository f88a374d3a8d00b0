/** What is typed into a shell so that it tells where it is; `sh` is any POSIX shell. */
export type ShellDialect = 'bash' | 'sh'

const promptText = 'dsh> '

/** A terminal that is read line by line takes no longer ones; some room is left for the quotes around. */
const longestPart = 1000

/**
 * One line that makes the shell say, before each prompt, how its last command ended, and before each command that it
 * begins. Keeps `$?`. The prompt is put in order again at each prompt; so it takes two deeds of a user to be rid of it.
 */
export function setUpLine(dialect: ShellDialect, nonce: string): string {
  if (dialect === 'sh') {
    const prompt = String.raw`$(printf '\033]133;D;')'$?'$(printf ';${nonce}\007${promptText}')`
    return `dsh_status=$?; PS1=${prompt} PS2=; (exit $dsh_status)`
  }
  return [
    'dsh_status=$?; dsh_prompt()',
    String.raw`{ PS1=$'\e]133;D;$?;${nonce}\a${promptText}' PS0=$'\e]133;C;${nonce}\a' PS2=; };`,
    'PROMPT_COMMAND=dsh_prompt; HISTFILE=; set +H +o history; (exit $dsh_status)',
  ].join(' ')
}

/**
 * One command in one go, whatever it holds: several lines, tabs, `!`, what a terminal would obey. The shell says the
 * number when it begins, so that no prompt before is taken for its end.
 */
export function runLine(
  dialect: ShellDialect,
  command: string,
  { number, nonce }: { readonly number: number; readonly nonce: string },
): string {
  const start = String.raw`printf '\033]133;R;${number};${nonce}\007'`
  if (dialect === 'bash') return `${start}; eval -- ${quoted(command, bashQuotes)}`
  return `${start}; eval "$(printf %b ${quoted(command, shQuotes)})"`
}

interface Quotes {
  readonly open: string
  escape(char: string): string
}

/** All but what is read as it is; a terminal obeys what is below a blank. */
const special = new RegExp(String.raw`[\0-\x1f\x7f\\']`)

const bashQuotes: Quotes = {
  open: "$'",
  escape: char => (char === '\\' || char === "'" ? `\\${char}` : `\\x${hex(char)}`),
}

/** As printf reads it. */
const shQuotes: Quotes = {
  open: "'",
  escape(char) {
    if (char === "'") return String.raw`'\''`
    return char === '\\' ? '\\\\' : `\\0${char.charCodeAt(0).toString(8).padStart(3, '0')}`
  },
}

/** Quoted parts, each on a line of its own, that the shell takes for one word. */
function quoted(text: string, { open, escape }: Quotes): string {
  const parts: string[] = []
  let part = ''
  for (const char of text) {
    part += special.test(char) ? escape(char) : char
    if (part.length < longestPart) continue
    parts.push(part)
    part = ''
  }
  return [...parts, part].map(each => `${open}${each}'`).join('\\\n')
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(2, '0')
}
