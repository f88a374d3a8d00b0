/** What a linear reading of a page gives. */
export interface PlainPage {
  readonly title?: string
  readonly text: string
}

/** Their content is no text of the page. */
const rawElements = [
  'script',
  'style',
  'noscript',
  'template',
  'iframe',
  'object',
  'canvas',
  'textarea',
  'select',
  'button',
  'svg',
  'title',
]

const blockElements = new Set(
  'address article aside blockquote body br center dd details dialog div dl dt fieldset figure figcaption footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol p pre section summary table tr ul'.split(
    ' ',
  ),
)

const voidElements = new Set(
  'area base br col embed hr img input link meta param source track wbr'.split(' '),
)

type Token =
  | { readonly kind: 'text'; readonly start: number; readonly end: number }
  | { readonly kind: 'tag'; readonly name: string; readonly closes: boolean; readonly end: number }
  /** A comment, a declaration, or an element whose content is no text. */
  | { readonly kind: 'other'; readonly name: string; readonly start: number; readonly end: number }

/**
 * The text of a page, with line ends where blocks begin and end. Takes time in proportion to the page, whatever it
 * holds: what has no end ends with the page.
 */
export function plainText(html: string): PlainPage {
  const parts: string[] = []
  let title: string | undefined
  for (const token of tokensOf(html)) {
    if (token.kind === 'text')
      parts.push(decodeEntities(html.slice(token.start, token.end).replace(/\s+/g, ' ')))
    else if (token.kind === 'other' && token.name === 'title')
      title ??= decodeEntities(html.slice(token.start, token.end).replace(/<[^]*$/, ''))
    else if (token.kind === 'tag') parts.push(markOf(token))
  }
  const text = parts
    .join('')
    .split('\n')
    .map(line => line.trim())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
  const clean = title?.replace(/\s+/g, ' ').trim() ?? ''
  return clean === '' ? { text } : { title: clean, text }
}

/** How deep elements stand in each other at most, as far as `limit`; ends that nothing opened count for nothing. */
export function nestingOf(html: string, limit: number): number {
  let deepest = 0
  const open: string[] = []
  for (const token of tokensOf(html)) {
    if (token.kind !== 'tag' || voidElements.has(token.name)) continue
    if (token.closes) close(open, token.name)
    else deepest = Math.max(deepest, begin(open, token.name))
    if (deepest > limit) break
  }
  return deepest
}

/** What may be left open, by what ends it besides an end tag. */
const endedBy: Readonly<Record<string, readonly string[]>> = {
  li: ['li'],
  dt: ['dt', 'dd'],
  dd: ['dt', 'dd'],
  option: ['option'],
  td: ['td', 'th'],
  th: ['td', 'th'],
  tr: ['td', 'th', 'tr'],
  tbody: ['td', 'th', 'tr', 'thead', 'tbody'],
  tfoot: ['td', 'th', 'tr', 'thead', 'tbody'],
}

function begin(open: string[], name: string): number {
  if (blockElements.has(name) && open.at(-1) === 'p') open.pop()
  const ended = Object.hasOwn(endedBy, name) ? (endedBy[name] ?? []) : []
  while (ended.includes(open.at(-1) ?? '')) open.pop()
  return open.push(name)
}

function close(open: string[], name: string): void {
  const at = open.lastIndexOf(name)
  if (at !== -1) open.length = at
}

function markOf({ name, closes }: Extract<Token, { kind: 'tag' }>): string {
  if (name === 'td' || name === 'th') return closes ? '' : ' '
  if (!blockElements.has(name)) return ''
  if (closes) return '\n'
  if (name === 'li') return '\n- '
  const [, level] = /^h([1-6])$/.exec(name) ?? []
  return level === undefined ? '\n' : `\n\n${'#'.repeat(Number(level))} `
}

function* tokensOf(html: string): Generator<Token> {
  const lower = html.toLowerCase()
  // toLowerCase may lengthen a text; then nothing is found by its place, and names are looked for as they stand.
  const names = lower.length === html.length ? lower : html
  for (let at = 0; at < html.length;) {
    const open = html.indexOf('<', at)
    if (open === -1 || !isMarkup(html, open + 1)) {
      const end = open === -1 ? html.length : open + 1
      yield { kind: 'text', start: at, end }
      at = end
      continue
    }
    if (open > at) yield { kind: 'text', start: at, end: open }
    const token = markupAt(html, names, open)
    yield token
    at = token.end
  }
}

function isMarkup(html: string, at: number): boolean {
  return /[a-z!/?]/i.test(html.charAt(at))
}

function markupAt(html: string, names: string, open: number): Token {
  if (html.startsWith('<!--', open))
    return { kind: 'other', name: '', start: open, end: commentEnd(html, open) }
  const sign = html.charAt(open + 1)
  const closes = sign === '/'
  const name = sign === '!' || sign === '?' ? '' : nameAt(names, open + (closes ? 2 : 1))
  const end = tagEnd(html, open)
  if (name === '') return { kind: 'other', name, start: open, end }
  if (closes || !rawElements.includes(name)) return { kind: 'tag', name, closes, end }
  const close = names.indexOf(`</${name}`, end)
  return { kind: 'other', name, start: end, end: close === -1 ? html.length : tagEnd(html, close) }
}

/** Behind a comment, in all the ways in which one may end. */
function commentEnd(html: string, open: number): number {
  if (html.startsWith('<!-->', open)) return open + 5
  if (html.startsWith('<!--->', open)) return open + 6
  const end = /--!?>/g
  end.lastIndex = open + 4
  return end.exec(html) === null ? html.length : end.lastIndex
}

const nameStart = /[a-z][a-z0-9:-]*/y

function nameAt(names: string, at: number): string {
  nameStart.lastIndex = at
  return nameStart.exec(names)?.[0] ?? ''
}

/** Behind the `>` that ends a tag; one in quotes does not. */
function tagEnd(html: string, open: number): number {
  for (let at = open + 1; at < html.length; at++) {
    const sign = html.charAt(at)
    if (sign === '>') return at + 1
    if ((sign === '"' || sign === "'") && html.charAt(at - 1) === '=') {
      const close = html.indexOf(sign, at + 1)
      if (close === -1) return html.length
      at = close
    }
  }
  return html.length
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  copy: '©',
  mdash: '—',
  ndash: '–',
  hellip: '…',
  laquo: '«',
  raquo: '»',
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return entities[String(name).toLowerCase()] ?? whole
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal)
    return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      ? String.fromCodePoint(code)
      : '\uFFFD'
  })
}
