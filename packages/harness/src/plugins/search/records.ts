/** One line of a file, as the search program printed it. */
export interface LineRecord {
  readonly path: string
  readonly number: number
  readonly isMatch: boolean
  /** As bytes: a file need not be UTF-8. */
  readonly line: Buffer
}

const nul = 0
const lineFeed = 10
const colon = 58

/** Takes output in pieces that may be torn anywhere; gives each record as soon as it is whole. */
abstract class RecordReader {
  #rest: Buffer = Buffer.alloc(0)

  /** False once the taker wants no more. */
  push(piece: Buffer): boolean {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    let at = 0
    for (;;) {
      const next = this.take(bytes, at)
      if (next === 'stop') return false
      if (next === at) break
      at = next
    }
    this.#rest = bytes.subarray(at)
    return true
  }

  /** Where the next record begins; `from` itself where this one is not whole yet. */
  protected abstract take(bytes: Buffer, from: number): number | 'stop'
}

/** Paths that end in NUL. */
export class PathReader extends RecordReader {
  readonly #onPath: (path: string) => boolean

  constructor(onPath: (path: string) => boolean) {
    super()
    this.#onPath = onPath
  }

  protected override take(bytes: Buffer, from: number): number | 'stop' {
    const end = bytes.indexOf(nul, from)
    if (end === -1) return from
    return this.#onPath(bytes.toString('utf8', from, end)) ? end + 1 : 'stop'
  }
}

/** A path, NUL, a number and a line feed: how many lines of a file match. */
export class CountReader extends RecordReader {
  readonly #onCount: (path: string, count: number) => boolean

  constructor(onCount: (path: string, count: number) => boolean) {
    super()
    this.#onCount = onCount
  }

  protected override take(bytes: Buffer, from: number): number | 'stop' {
    const path = bytes.indexOf(nul, from)
    const end = path === -1 ? -1 : bytes.indexOf(lineFeed, path)
    if (end === -1) return from
    const count = Number(bytes.toString('latin1', path + 1, end))
    return this.#onCount(bytes.toString('utf8', from, path), count) ? end + 1 : 'stop'
  }
}

/** A path, NUL, a number, `:` for a match or `-` for a line around one, and the line. */
export class LineReader extends RecordReader {
  readonly #onLine: (record: LineRecord) => boolean
  /** Most records are of the file of the one before. */
  #lastPath: { readonly bytes: Buffer; readonly text: string } = { bytes: Buffer.alloc(0), text: '' }

  constructor(onLine: (record: LineRecord) => boolean) {
    super()
    this.#onLine = onLine
  }

  protected override take(bytes: Buffer, from: number): number | 'stop' {
    const path = bytes.indexOf(nul, from)
    if (path === -1) return from
    const start = behindNotes(bytes, from, path)
    const end = bytes.indexOf(lineFeed, path)
    if (end === -1) return from
    let [number, at] = [0, path + 1]
    for (; isDigit(bytes[at]); at++) number = number * 10 + ((bytes[at] ?? 0) - 48)
    const line = bytes.subarray(at + 1, end)
    const record = {
      path: this.#path(bytes.subarray(start, path)),
      number,
      isMatch: bytes[at] === colon,
      line,
    }
    return this.#onLine(record) ? end + 1 : 'stop'
  }

  #path(bytes: Buffer): string {
    if (!bytes.equals(this.#lastPath.bytes)) {
      this.#lastPath = { bytes: Buffer.from(bytes), text: bytes.toString('utf8') }
    }
    return this.#lastPath.text
  }
}

const note = ': binary file matches (found "\\0" byte around offset '

/** Of a file that is named and is not text only a note is printed, on a line without NUL. */
function behindNotes(bytes: Buffer, from: number, end: number): number {
  const last = bytes.subarray(from, end).lastIndexOf(note)
  if (last === -1) return from
  const lineEnd = bytes.indexOf(lineFeed, from + last)
  return lineEnd === -1 || lineEnd >= end ? from : lineEnd + 1
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 48 && byte <= 57
}
