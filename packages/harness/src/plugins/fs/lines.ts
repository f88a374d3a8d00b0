/** One line of a text: `text.slice(start, end)`, and its line end up to `next`. */
export interface Line {
  readonly start: number
  readonly end: number
  readonly next: number
}

const lineEnd = /\r\n|\n|\r/g

/** The lines of `text`; CRLF, LF and a lone CR all end one. The last is what follows the last line end, maybe empty. */
export function linesOf(text: string): readonly Line[] {
  const lines: Line[] = []
  let start = 0
  for (const { index, 0: end } of text.matchAll(lineEnd)) {
    lines.push({ start, end: index, next: index + end.length })
    start = index + end.length
  }
  lines.push({ start, end: text.length, next: text.length })
  return lines
}

export function splitLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/)
}

export function withLineFeeds(text: string): string {
  return text.includes('\r') ? text.replace(lineEnd, '\n') : text
}

/** The index of the line that holds offset `at`. */
export function lineAt(lines: readonly Line[], at: number): number {
  let low = 0
  let high = lines.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((lines[middle]?.start ?? 0) <= at) low = middle
    else high = middle - 1
  }
  return low
}

const quotes = /[\u2018\u2019\u201a\u201b\u2032\u2035]/g
const doubleQuotes = /[\u201c\u201d\u201e\u201f\u2033\u2036]/g
const dashes = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g
/** What untrusted text is shown with in place of signs that could begin an instruction. */
const shown = /[\u2039\uff3b\uff1a]/g
const meant: Readonly<Record<string, string>> = { '\u2039': '<', '\uff3b': '[', '\uff1a': ':' }
const spaces = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g

/** Typographic quotes, dashes, spaces and signs as plain ones; every character stays one character. */
export function foldPunctuation(line: string): string {
  const plain = line.replace(quotes, "'").replace(doubleQuotes, '"').replace(dashes, '-').replace(spaces, ' ')
  return withPlainSigns(plain, sign => meant[sign] ?? sign)
}

function withPlainSigns(text: string, plain: (sign: string) => string): string {
  return text.replace(shown, plain)
}

/** `fresh` with the signs that `there` has where `old` has those by which untrusted text is shown. */
export function withSignsOf(there: string, old: string, fresh: string): string {
  return withPlainSigns(fresh, sign =>
    old.includes(sign) && !there.includes(sign) ? (meant[sign] ?? sign) : sign,
  )
}

/** Without blanks at the end. */
export function trimRight(line: string): string {
  return line.replace(/[ \t]+$/, '')
}
