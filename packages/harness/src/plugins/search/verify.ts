import fs from 'node:fs'
import { promisify, TextDecoder } from 'node:util'
import { lineText } from './matches.ts'
import type { FileMatches, MatchLine } from './matches.ts'

const open = promisify<string, number, number>(fs.open)
const close = promisify(fs.close)
const realpath = promisify<string, string>(fs.realpath.native)
const read = promisify(fs.read)

const pieceBytes = 256 * 1024
const lineFeed = 10
const flags = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK | (fs.constants.O_NOFOLLOW ?? 0)

/**
 * Those of `files` whose lines stand in the file that lies at its real path. The search program goes by names, and whoever
 * puts a link in place of a folder while it runs could lead it to a file that nobody may see.
 */
export async function standing<File extends FileMatches>(
  files: readonly File[],
  realOf: (path: string) => string | undefined,
  maxLineBytes: number,
): Promise<File[]> {
  const found = await Promise.all(
    files.map(async file => {
      const real = realOf(file.path)
      return real !== undefined && (await hasLines(real, file.lines, maxLineBytes)) ? [file] : []
    }),
  )
  return found.flat()
}

async function hasLines(path: string, lines: readonly MatchLine[], maxLineBytes: number): Promise<boolean> {
  let file: number | undefined
  try {
    file = await open(path, flags)
    if ((await whereIs(file, path)) !== path) return false
    const wanted = new Map(lines.map(({ number, text }) => [number, text]))
    for await (const { number, bytes } of linesOf(file, Math.max(...wanted.keys()))) {
      const text = wanted.get(number)
      if (text === undefined) continue
      if (lineText(bytes, maxLineBytes) !== text) return false
      wanted.delete(number)
    }
    return wanted.size === 0
  } catch {
    return false
  } finally {
    if (file !== undefined) await close(file)
  }
}

/** Where the system does not tell where an open file lies, its name has to do. */
async function whereIs(file: number, path: string): Promise<string> {
  try {
    return fs.readlinkSync(`/proc/self/fd/${file}`)
  } catch {
    return await realpath(path)
  }
}

interface Line {
  readonly number: number
  readonly bytes: Buffer
}

/** As UTF-8, like the search program's own; up to line `last`. */
async function* linesOf(file: number, last: number): AsyncGenerator<Line> {
  let rest: Buffer = Buffer.alloc(0)
  let number = 1
  for await (const piece of piecesOf(file)) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    let from = 0
    for (let end = bytes.indexOf(lineFeed); end >= 0 && number <= last; end = bytes.indexOf(lineFeed, from)) {
      yield { number, bytes: bytes.subarray(from, end) }
      number++
      from = end + 1
    }
    if (number > last) return
    rest = bytes.subarray(from)
  }
  yield { number, bytes: rest }
}

async function* piecesOf(file: number): AsyncGenerator<Buffer> {
  let decoder: TextDecoder | undefined
  for (let isFirst = true; ; isFirst = false) {
    const { bytesRead, buffer } = await read(file, Buffer.allocUnsafe(pieceBytes), 0, pieceBytes, null)
    const bytes = buffer.subarray(0, bytesRead)
    if (isFirst) decoder = decoderFor(bytes)
    if (bytesRead === 0) return
    yield decoder === undefined ? bytes : Buffer.from(decoder.decode(bytes, { stream: true }))
  }
}

function decoderFor([first, second]: Buffer): TextDecoder | undefined {
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le')
  return first === 0xfe && second === 0xff ? new TextDecoder('utf-16be') : undefined
}
