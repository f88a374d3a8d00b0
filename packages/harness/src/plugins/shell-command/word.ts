import type { Word, WordPart } from 'unbash'

/** What can be said of a word without running anything. */
export interface ReadWord {
  readonly value: string | undefined
  /** What all that may become of it begins with. */
  readonly stem: string
}

const unknown: ReadWord = { value: undefined, stem: '' }
/** A tilde is a path from the root, whosever home it is. */
const home: ReadWord = { value: undefined, stem: '/' }

export function readWord(word: Word): ReadWord {
  const { text, parts } = word
  if (text.startsWith('~')) return home
  const pieces = parts === undefined ? [readLiteral(word.value, text)] : parts.map(part => readPart(part))
  return join(pieces)
}

function join(pieces: readonly ReadWord[]): ReadWord {
  if (pieces.some(isSeveral)) return unknown
  let stem = ''
  for (const piece of pieces) {
    if (piece.value === undefined) return { value: undefined, stem: stem + piece.stem }
    stem += piece.value
  }
  return { value: stem, stem }
}

/** May become several words, of which later ones begin with anything. */
const several: ReadWord = { value: undefined, stem: '' }
const isSeveral = (piece: ReadWord): boolean => piece === several

function readPart(part: WordPart): ReadWord {
  switch (part.type) {
    case 'Literal':
      return readLiteral(part.value, part.text)
    case 'SingleQuoted':
      return { value: part.value, stem: part.value }
    case 'AnsiCQuoted':
      // The shell ends such a text at a NUL.
      return part.value.includes('\0') ? several : { value: part.value, stem: part.value }
    case 'DoubleQuoted':
      return join(part.parts.map(child => readQuoted(child)))
    case 'Glob':
      return { value: undefined, stem: '' }
    case 'BraceExpansion':
      return part.parts === undefined ? { value: undefined, stem: '' } : several
    default:
      return several
  }
}

/** An expansion between double quotes stays one word, but for lists. */
function readQuoted(part: WordPart): ReadWord {
  if (part.type === 'Literal') return { value: part.value, stem: part.value }
  return part.text.includes('@') ? several : { value: undefined, stem: '' }
}

/** Behind `=` and `:` a tilde may be expanded too. */
function readLiteral(value: string, text: string): ReadWord {
  const at = text.search(/[=:]~/)
  return at < 0 ? { value, stem: value } : { value: undefined, stem: text.slice(0, at).replaceAll('\\', '') }
}
