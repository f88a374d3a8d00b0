import { createReadStream } from 'node:fs'
import { HarnessError } from '@dsh/harness/kernel'

/** Why a file holds no lines of text. */
export class TextFileError extends HarnessError<'NO_TEXT' | 'LINE_TOO_LONG'> {}

/** In UTF-16 units; no string of JavaScript may be twice as long. */
const longestLine = 2 ** 28

/**
 * The lines of a file of any size, without their line feeds. Rejects with a TextFileError for one that is no UTF-8 or has
 * an endless line. A mark of the byte order is passed over.
 */
export async function* textLines(path: string, { longest = longestLine } = {}): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let parts: string[] = []
  let length = 0
  let count = 0
  const decode = (bytes?: Uint8Array): string => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch (cause) {
      throw new TextFileError('NO_TEXT', `line ${count + 1} or one soon after it is no UTF-8`, { cause })
    }
  }
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 18 })) {
    const lines = decode(chunk as Buffer).split('\n')
    for (const [at, piece] of lines.entries()) {
      parts.push(piece)
      length += piece.length
      if (length > longest)
        throw new TextFileError('LINE_TOO_LONG', `line ${count + 1} is longer than ${longest} characters`)
      if (at === lines.length - 1) break
      count += 1
      yield parts.join('')
      parts = []
      length = 0
    }
  }
  parts.push(decode())
  yield parts.join('')
}
