import { ToolArgsError } from '../../core/tools/index.ts'

const named: Readonly<Record<string, string>> = {
  enter: '\r',
  tab: '\t',
  escape: '\x1b',
  esc: '\x1b',
  space: ' ',
  backspace: '\x7f',
  delete: '\x1b[3~',
  up: '\x1b[A',
  down: '\x1b[B',
  right: '\x1b[C',
  left: '\x1b[D',
  home: '\x1b[H',
  end: '\x1b[F',
  pageup: '\x1b[5~',
  pagedown: '\x1b[6~',
}

/** What a terminal sends for a key: `Enter`, `Up`, `C-c`, `M-x`, in `<…>` or not. Throws INVALID_ARGS for any other. */
export function keyBytes(key: string): string {
  const name = keyName(key)
  const known = named[name.toLowerCase()]
  if (known !== undefined) return known
  const control = /^(?:C|Ctrl)-([a-z@[\\\]^_?])$/i.exec(name)?.[1]?.toUpperCase()
  if (control === '?') return '\x7f'
  if (control !== undefined) return String.fromCharCode(control.charCodeAt(0) % 64)
  const meta = /^(?:M|Alt)-([ -~])$/i.exec(name)?.[1]
  if (meta !== undefined) return `\x1b${meta}`
  throw new ToolArgsError([`keys: there is no key "${key}"; use Enter, Tab, Escape, Up, C-c and the like`])
}

export function keyName(key: string): string {
  return /^<(.+)>$/s.exec(key)?.[1] ?? key
}
