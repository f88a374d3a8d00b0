import { StringDecoder } from 'node:string_decoder'

/** What a shell's output consists of: text, and the words by which the shell itself says where it is. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** A command begins; `number` is that of one that was run. */
  | { readonly kind: 'start'; readonly number?: number }
  /** The shell is at its prompt. */
  | { readonly kind: 'prompt'; readonly exitCode: number }

/** Longer than any marker. */
const longestMarker = 96

/**
 * Finds the markers of one shell in its output, whatever pieces it comes in. Only those that carry the nonce count; what
 * is not UTF-8 becomes U+FFFD.
 */
export class MarkerStream {
  readonly #decoder = new StringDecoder('utf8')
  readonly #marker: RegExp
  readonly #begin: string
  #held = ''

  constructor(nonce: string) {
    this.#begin = `\x1b]133;`
    this.#marker = new RegExp(String.raw`\x1b\]133;(?:C|R;(\d+)|D;(\d{1,3}));${nonce}\x07`, 'g')
  }

  push(bytes: Uint8Array): Piece[] {
    return this.#split(this.#decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)))
  }

  /** What was held back as the beginning of a marker that never came. */
  end(): Piece[] {
    const pieces = this.#split(this.#decoder.end())
    const rest = this.#held
    this.#held = ''
    return rest === '' ? pieces : [...pieces, { kind: 'text', text: rest }]
  }

  #split(added: string): Piece[] {
    const text = this.#held + added
    const pieces: Piece[] = []
    let at = 0
    for (const match of text.matchAll(this.#marker)) {
      if (match.index > at) pieces.push({ kind: 'text', text: text.slice(at, match.index) })
      pieces.push(toPiece(match))
      at = match.index + match[0].length
    }
    const open = this.#openAt(text, at)
    if (open > at) pieces.push({ kind: 'text', text: text.slice(at, open) })
    this.#held = text.slice(open)
    return pieces
  }

  /** Where a marker may have begun that has not come whole; the end where none has. */
  #openAt(text: string, from: number): number {
    const escape = text.lastIndexOf('\x1b')
    if (escape < from || text.length - escape > longestMarker) return text.length
    const tail = text.slice(escape)
    const isOpen =
      tail.length < this.#begin.length ? this.#begin.startsWith(tail) : tail.startsWith(this.#begin)
    return isOpen && !tail.includes('\x07') ? escape : text.length
  }
}

function toPiece([, number, exitCode]: RegExpMatchArray): Piece {
  if (exitCode !== undefined) return { kind: 'prompt', exitCode: Number(exitCode) }
  return number === undefined ? { kind: 'start' } : { kind: 'start', number: Number(number) }
}
