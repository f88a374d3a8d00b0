import { literal } from '../../kernel/index.ts'
import { searchable } from './document.ts'
import { SessionQueryError } from './errors.ts'
import type { Snippet } from './service.ts'

const mostCharacters = 1000
/** What the index knows: which events hold a run of three characters. */
const runLength = 3
/** More runs would find no fewer events that do not hold the text. */
const mostRuns = 40
const snippetLead = 60

/** A piece of text that is looked for as it stands, in whatever case. */
export class Needle {
  readonly text: string
  readonly #pattern: RegExp

  /** Throws INVALID_QUERY. */
  constructor(query: string) {
    if (query.includes('\0')) throw invalid('the query holds a NUL character')
    const text = searchable(query)
    if (text === '') throw invalid('the query is empty')
    const { length } = Array.from(text)
    if (length > mostCharacters)
      throw invalid(`the query has ${length} characters, at most ${mostCharacters} are looked for`)
    this.text = text
    this.#pattern = new RegExp(literal(text), 'giu')
  }

  /** The runs of three characters in it, as a query of the index; undefined where the text is too short for one. */
  get runs(): string | undefined {
    const chars = Array.from(this.text)
    if (chars.length < runLength) return undefined
    const runs = new Set(chars.slice(runLength - 1).map((_, at) => chars.slice(at, at + runLength).join('')))
    const asked = [...runs].filter((_, at) => at < mostRuns)
    return asked.map(run => `"${run.replaceAll('"', '""')}"`).join(' AND ')
  }

  /** Spellings of a short text, one of which stands in every text that holds it in whatever case. */
  get spellings(): readonly string[] {
    const forms = Array.from(this.text, char => [
      ...new Set([char, char.toLowerCase(), char.toUpperCase(), ...(foldings.get(char.toLowerCase()) ?? [])]),
    ])
    return forms.reduce<string[]>(
      (heads, tails) => heads.flatMap(head => tails.map(tail => head + tail)),
      [''],
    )
  }

  countIn(text: string): number {
    let count = 0
    this.#pattern.lastIndex = 0
    while (this.#pattern.test(text)) count++
    return count
  }

  /** The part of `text` around the first place, of at most `length` characters, with every place in it marked. */
  snippetOf(text: string, length: number): Snippet {
    this.#pattern.lastIndex = 0
    const at = this.#pattern.exec(text)?.index ?? 0
    const before = Array.from(text.slice(Math.max(0, at - 2 * snippetLead), at).toWellFormed())
    const lead = before.slice(-snippetLead)
    const room = length - lead.length
    // Twice as many code units hold that many characters, whatever they are.
    const rest = Array.from(text.slice(at, at + 2 * room + 2))
    const shown = rest.slice(0, room)
    const isWholeStart = lead.join('').length === at
    const isWholeEnd = shown.join('').length === text.length - at
    const body = `${isWholeStart ? '' : '…'}${lead.join('')}${shown.join('')}${isWholeEnd ? '' : '…'}`
    return { text: body, marks: this.#placesIn(body) }
  }

  #placesIn(text: string): readonly (readonly [number, number])[] {
    this.#pattern.lastIndex = 0
    return [...text.matchAll(this.#pattern)].map(match => [match.index, match.index + match[0].length])
  }
}

/** Letters beside the two cases that are the same letter without regard to case. */
const foldings: ReadonlyMap<string, readonly string[]> = new Map([
  ['k', ['\u212a']],
  ['s', ['ſ']],
  ['å', ['\u212b']],
  ['σ', ['ς']],
  ['ς', ['σ', 'Σ']],
  ['ſ', ['s', 'S']],
])

function invalid(message: string): SessionQueryError {
  return new SessionQueryError('SESSION_QUERY_INVALID_QUERY', message)
}
