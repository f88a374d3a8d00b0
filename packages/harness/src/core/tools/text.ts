/** What was kept of a text. `omittedBytes` of UTF-8 are missing between `head` and `tail`. */
export interface KeptText {
  readonly head: string
  readonly tail: string
  readonly omittedBytes: number
}

/** Budgets in bytes of UTF-8. */
export interface TextBudget {
  readonly headBytes?: number
  readonly tailBytes?: number
}

export interface CutOptions {
  /** Which part stays; both ends share the budget equally. Default 'head'. */
  readonly keep?: 'head' | 'tail' | 'ends'
  /** Stands for what is missing and counts against the budget; left out where it does not fit. Default '…'. */
  readonly mark?: string | ((omittedBytes: number) => string)
}

/** How far back a terminal sequence that a cut would tear is looked for. */
const escapeReach = 512
const esc = 0x1b

/** `text` with U+FFFD for every half of a surrogate pair: what may go to a model, a file or a wire. */
export function wellFormed(text: string): string {
  return text.toWellFormed()
}

/**
 * At most `maxBytes` bytes of UTF-8 of `text`, never ending or beginning inside a character or a terminal escape
 * sequence. This and `TextRetainer` are the only places where text is cut.
 */
export function cutText(text: string, maxBytes: number, options: CutOptions = {}): string {
  const { keep = 'head', mark = '…' } = options
  const total = utf8Length(text)
  if (total <= checkedBudget(maxBytes, 'maxBytes')) return wellFormed(text)
  const markFor = typeof mark === 'string' ? () => mark : mark
  // The mark may name a number: the largest it could name decides how much room is left.
  const room = maxBytes - utf8Length(markFor(total))
  const { head, tail, omittedBytes } = keepText(text, budgetOf(keep, room < 0 ? maxBytes : room))
  return room < 0 ? head + tail : head + markFor(omittedBytes) + tail
}

/** The two ends of `text`; the whole of it as `head` where it fits into both budgets together. */
export function keepText(text: string, budget: TextBudget): KeptText {
  const { headBytes, tailBytes } = checked(budget)
  const total = utf8Length(text)
  if (total <= headBytes + tailBytes) return { head: wellFormed(text), tail: '', omittedBytes: 0 }
  // A code unit takes at least a byte, so nothing behind these many can be part of an end.
  const first = Buffer.from(sliceText(text, 0, headBytes), 'utf8').subarray(0, headBytes)
  const last = Buffer.from(sliceText(text, -(tailBytes + escapeReach), text.length), 'utf8')
  return ends(first, last, { total, tailBytes })
}

export function utf8Length(text: string): number {
  return Buffer.byteLength(text, 'utf8')
}

/**
 * Keeps the two ends of a text that arrives in pieces, in memory bounded by the budgets.
 *
 * Pieces may be torn anywhere, inside a character too. What is not UTF-8 becomes U+FFFD.
 */
export class TextRetainer {
  readonly #headBytes: number
  readonly #tailBytes: number
  readonly #head: Uint8Array[] = []
  readonly #tail: Uint8Array[] = []
  #headLength = 0
  #tailLength = 0
  #total = 0
  #halfPair = ''

  constructor(budget: TextBudget) {
    const { headBytes, tailBytes } = checked(budget)
    this.#headBytes = headBytes
    this.#tailBytes = tailBytes
  }

  get totalBytes(): number {
    return this.#total + (this.#halfPair === '' ? 0 : 3)
  }

  push(piece: string | Uint8Array): void {
    if (typeof piece === 'string') this.#pushText(piece)
    else this.#pushBytes(piece)
  }

  /** May be asked at any time; more pieces may follow. */
  result(): KeptText {
    const pending = Buffer.from(this.#halfPair, 'utf8')
    const total = this.#total + pending.length
    const head = Buffer.concat(this.#head)
    const tail = Buffer.concat([...this.#tail, pending])
    const isWhole = head.length + tail.length === total
    const seen = isWhole ? Buffer.concat([head, tail]) : tail
    if (total <= this.#headBytes + this.#tailBytes) {
      return { head: seen.toString('utf8'), tail: '', omittedBytes: 0 }
    }
    return ends(head, seen, { total, tailBytes: this.#tailBytes })
  }

  #pushText(piece: string): void {
    const text = this.#halfPair + piece
    const last = text.charCodeAt(text.length - 1)
    const isTorn = last >= 0xd800 && last <= 0xdbff
    this.#halfPair = isTorn ? text.charAt(text.length - 1) : ''
    this.#keep(Buffer.from(isTorn ? sliceText(text, 0, -1) : text, 'utf8'))
  }

  #pushBytes(piece: Uint8Array): void {
    if (this.#halfPair !== '') this.#keep(Buffer.from(this.#halfPair, 'utf8'))
    this.#halfPair = ''
    this.#keep(piece)
  }

  #keep(bytes: Uint8Array): void {
    this.#total += bytes.length
    const room = Math.min(bytes.length, this.#headBytes - this.#headLength)
    if (room > 0) {
      this.#head.push(bytes.subarray(0, room))
      this.#headLength += room
    }
    if (room < bytes.length) this.#keepEnd(bytes.subarray(Math.max(0, room)))
  }

  #keepEnd(bytes: Uint8Array): void {
    const limit = this.#tailBytes + escapeReach
    if (bytes.length > limit) {
      // A copy, so that a huge piece is not held for its last few bytes.
      this.#tail.splice(0, Infinity, Buffer.from(bytes.subarray(bytes.length - limit)))
      this.#tailLength = limit
      return
    }
    this.#tail.push(bytes)
    this.#tailLength += bytes.length
    this.#dropFront()
  }

  #dropFront(): void {
    for (let first = this.#tail[0]; first !== undefined; first = this.#tail[0]) {
      const rest = this.#tailLength - first.length
      if (rest < this.#tailBytes + escapeReach) return
      this.#tail.shift()
      this.#tailLength = rest
    }
  }
}

function budgetOf(keep: 'head' | 'tail' | 'ends', bytes: number): TextBudget {
  if (keep === 'head') return { headBytes: bytes }
  if (keep === 'tail') return { tailBytes: bytes }
  return { headBytes: Math.ceil(bytes / 2), tailBytes: Math.floor(bytes / 2) }
}

function checked(budget: TextBudget): { headBytes: number; tailBytes: number } {
  const { headBytes = 0, tailBytes = 0 } = budget
  return {
    headBytes: checkedBudget(headBytes, 'headBytes'),
    tailBytes: checkedBudget(tailBytes, 'tailBytes'),
  }
}

function checkedBudget(value: number, name: string): number {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`${name} is ${value}, not a whole number of 0 or more`)
  }
  return value
}

/** `first` is what fits into the head's budget; `last` begins a little before the tail's, to see what a cut would tear. */
function ends(first: Buffer, last: Buffer, cut: { total: number; tailBytes: number }): KeptText {
  const end = endOf(first)
  const start = startOf(last, Math.max(0, last.length - cut.tailBytes))
  return {
    head: first.toString('utf8', 0, end),
    tail: last.toString('utf8', start),
    omittedBytes: cut.total - end - (last.length - start),
  }
}

/** The last border in `bytes`, behind which the text goes on. */
function endOf(bytes: Uint8Array): number {
  let end = bytes.length
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    if (byte >= 0xc0 && back < sequenceLength(byte)) end -= back
    break
  }
  const escape = end === 0 ? -1 : bytes.lastIndexOf(esc, end - 1)
  if (escape === -1 || escape < end - escapeReach) return end
  return escapeEnd(bytes, escape) === undefined ? escape : end
}

/** The first border at or behind `min`; `bytes` begins before it where the text does. */
function startOf(bytes: Uint8Array, min: number): number {
  let start = min
  for (let step = 0; step < 3 && isContinuation(bytes[start]); step++) start++
  const escape = start === 0 ? -1 : bytes.lastIndexOf(esc, start - 1)
  if (escape === -1 || escape < start - escapeReach) return start
  const after = escapeEnd(bytes, escape)
  return after !== undefined && after > start ? after : start
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4
  return lead >= 0xe0 ? 3 : 2
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}

/** Where the terminal sequence that begins at `start` is over; undefined where `bytes` ends first. */
function escapeEnd(bytes: Uint8Array, start: number): number | undefined {
  const kind = bytes[start + 1]
  if (kind === undefined) return undefined
  if (kind === 0x5b) return endOfRun(bytes, start + 2, byte => byte >= 0x20 && byte <= 0x3f)
  if (kind === 0x5d) return endOfCommand(bytes, start + 2)
  return endOfRun(bytes, start + 1, byte => byte >= 0x20 && byte <= 0x2f)
}

/** Behind the one byte that follows all those of `isInner`. */
function endOfRun(bytes: Uint8Array, from: number, isInner: (byte: number) => boolean): number | undefined {
  for (let index = from; index < bytes.length; index++) {
    if (!isInner(bytes[index] ?? 0)) return index + 1
  }
  return undefined
}

/** Behind BEL or ESC \, which end an operating system command. */
function endOfCommand(bytes: Uint8Array, from: number): number | undefined {
  for (let index = from; index < bytes.length; index++) {
    if (bytes[index] === 0x07) return index + 1
    if (bytes[index] === esc && bytes[index + 1] === 0x5c) return index + 2
  }
  return undefined
}

function sliceText(text: string, start: number, end: number): string {
  // oxlint-disable-next-line no-restricted-properties -- only between whole characters
  return text.slice(start, end)
}
