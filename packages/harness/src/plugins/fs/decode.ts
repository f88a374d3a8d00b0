import { FsError } from './errors.ts'

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
/** A NUL among this many first bytes tells a binary file. */
const sniffedBytes = 8192

export interface DecodedText {
  /** Without the byte order mark. */
  readonly text: string
  readonly hasMark: boolean
}

/** Throws FS_NOT_TEXT with what is in the way: a NUL, another encoding, or the first byte that is not UTF-8. */
export function decodeText(
  bytes: Buffer,
  displayPath: string,
  { sniff = sniffedBytes }: { readonly sniff?: number } = {},
): DecodedText {
  assertNoNul(bytes.subarray(0, sniff), displayPath)
  const hasMark = bytes.subarray(0, 3).equals(byteOrderMark)
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), hasMark }
  } catch {
    throw notUtf8(displayPath, firstWrongByte(bytes))
  }
}

export function encodeText({ text, hasMark }: DecodedText): Buffer {
  return hasMark ? Buffer.concat([byteOrderMark, Buffer.from(text)]) : Buffer.from(text)
}

/** The same for text that comes in pieces. */
export async function* decodeStream(
  pieces: AsyncIterable<Buffer>,
  displayPath: string,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let seen = 0
  for await (const piece of pieces) {
    if (seen < sniffedBytes) assertNoNul(piece.subarray(0, sniffedBytes - seen), displayPath)
    seen += piece.length
    yield decodePart(() => decoder.decode(piece, { stream: true }), displayPath)
  }
  yield decodePart(() => decoder.decode(), displayPath)
}

function decodePart(decode: () => string, displayPath: string): string {
  try {
    return decode()
  } catch {
    throw notUtf8(displayPath)
  }
}

function assertNoNul(bytes: Buffer, displayPath: string): void {
  if (!bytes.includes(0)) return
  const isUtf16 = /^(fffe|feff)/.test(bytes.subarray(0, 2).toString('hex'))
  const what = isUtf16 ? 'UTF-16, and only UTF-8 can be handled' : 'binary, not text'
  throw new FsError('FS_NOT_TEXT', `${displayPath} is ${what}`)
}

function notUtf8(displayPath: string, wrong?: { readonly offset: number; readonly value: number }): FsError {
  const where =
    wrong === undefined ? '' : ` (byte 0x${wrong.value.toString(16).toUpperCase()} at offset ${wrong.offset})`
  return new FsError('FS_NOT_TEXT', `${displayPath} is not UTF-8${where}`)
}

function firstWrongByte(bytes: Buffer): { readonly offset: number; readonly value: number } | undefined {
  const text = bytes.toString('utf8')
  let offset = 0
  let from = 0
  for (let at = text.indexOf('\ufffd'); at !== -1; at = text.indexOf('\ufffd', from)) {
    offset += Buffer.byteLength(text.slice(from, at))
    const value = bytes[offset]
    const isReal = bytes.subarray(offset, offset + 3).toString('hex') === 'efbfbd'
    if (!isReal && value !== undefined) return { offset, value }
    offset += 3
    from = at + 1
  }
  return undefined
}
