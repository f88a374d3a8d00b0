import { cutText, utf8Length, wellFormed } from '../../core/tools/index.ts'

export interface TitleLimits {
  readonly maxBytes: number
  /** Parts between spaces, or between the punctuation of languages that have none. */
  readonly maxWords?: number
}

/** `text` as one line of a list: no terminal sequences, single spaces, within the limits. Empty where nothing is left. */
export function titleOf(text: string, { maxBytes, maxWords = Infinity }: TitleLimits): string {
  const clean = cleaned(text)
  const whole = clean.match(parts) ?? []
  const words = whole.slice(0, maxWords).join('')
  const cut = utf8Length(words) <= maxBytes ? words : cutAtPart(words, maxBytes)
  return cut.replace(looseEnd, '')
}

/** Whether a title can be made of `text` at all. */
export function hasText(text: string): boolean {
  return cleaned(text) !== ''
}

function cleaned(text: string): string {
  return wellFormed(text)
    .replace(sequences, '')
    .replace(hidden, '')
    .replace(/\s+/gu, ' ')
    .replace(controls, '')
    .trim()
}

/** Ends where a part ends, unless too little were left. */
function cutAtPart(words: string, maxBytes: number): string {
  const cut = cutText(words, maxBytes, { mark: '' })
  const isWhole = separator.test(words.charAt(cut.length)) || separator.test(cut.at(-1) ?? '')
  const atPart = isWhole ? cut : (cut.match(parts) ?? []).slice(0, -1).join('')
  return utf8Length(atPart) * 2 > maxBytes ? atPart : cut
}

/** CSI, OSC and other escapes of terminals; an OSC that never ends is its first two signs alone. */
const sequences =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)(?:[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c))?|\u001b[ -/]*[0-~]?/g

/** Signs that change how a line runs, or that nobody sees. */
const hidden = /[\p{Bidi_Control}\u200b\u2060\ufeff\u2028\u2029]/gu
const controls = /\p{Cc}/gu
const separator = /[\s，。！？；：、]/u
const parts = /[^\s，。！？；：、]+[\s，。！？；：、]*/gu
const looseEnd = /(?:[\s，；：、]|\u200d|\ufe0e|\ufe0f)+$/u
