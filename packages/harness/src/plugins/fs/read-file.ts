import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { isSamePath, leadsElsewhere } from './anchor.ts'
import { close, fstat, open, pathOfOpen, readInto } from './calls.ts'
import { FsError } from './errors.ts'
import { throwIfAborted, toFsError } from './failure.ts'
import type { FsTarget } from './service.ts'

/** Half a gigabyte: what fits into one string. */
const maxTextBytes = 2 ** 29 - 24
const pieceBytes = 256 * 1024

export interface ReadLimits {
  /** Beyond this FS_TOO_LARGE, also when the file grows meanwhile. */
  readonly maxBytes?: number
  readonly signal?: AbortSignal | undefined
}

/** All bytes of a regular file. */
export async function readWhole(target: FsTarget, limits: ReadLimits = {}): Promise<Buffer> {
  const { maxBytes = maxTextBytes, signal } = limits
  const { file, size } = await openRegular(target)
  try {
    if (size > maxBytes) throw tooLarge(target, maxBytes)
    // One more byte shows a file that grew. Some special files say 0 and hold more.
    let buffer = Buffer.allocUnsafe(Math.min(size || pieceBytes, maxBytes) + 1)
    let length = 0
    for (;;) {
      const count = await readInto(file, buffer, length)
      throwIfAborted(signal, `reading ${target.displayPath}`)
      length += count
      if (length > maxBytes) throw tooLarge(target, maxBytes)
      // Without a limit a file that grows is as good as it was when it was opened.
      const isWhole = limits.maxBytes === undefined && length === size
      if (count === 0 || isWhole) return buffer.subarray(0, length)
      if (length === buffer.length)
        buffer = Buffer.concat([buffer], Math.min(buffer.length * 2, maxBytes + 1))
    }
  } catch (error) {
    throw toFsError(error, `read ${target.displayPath}`)
  } finally {
    await close(file)
  }
}

/** The bytes of a regular file piece by piece; each piece is the reader's own. */
export async function* readPieces(
  target: FsTarget,
  signal?: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const { file } = await openRegular(target)
  try {
    for (;;) {
      throwIfAborted(signal, `reading ${target.displayPath}`)
      const buffer = Buffer.allocUnsafe(pieceBytes)
      const count = await readInto(file, buffer, 0)
      if (count === 0) return
      yield buffer.subarray(0, count)
    }
  } catch (error) {
    throw toFsError(error, `read ${target.displayPath}`)
  } finally {
    await close(file)
  }
}

/** SHA-256 in hex of a file of any size. */
export async function hashFile(target: FsTarget, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of readPieces(target, signal)) hash.update(piece)
  return hash.digest('hex')
}

export function hashBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function openRegular({
  targetKey,
  displayPath,
}: FsTarget): Promise<{ readonly file: number; readonly size: number }> {
  let file: number | undefined
  try {
    // Without waiting: opening a pipe would last until somebody writes into it.
    file = await open(targetKey, constants.O_RDONLY | constants.O_NONBLOCK, 0)
    assertOpened(file, targetKey)
    const stats = await fstat(file)
    if (stats.isFile()) return { file, size: stats.size }
    throw new FsError('FS_NOT_REGULAR_FILE', `${displayPath} is not a file`)
  } catch (error) {
    if (file !== undefined) await close(file)
    throw toFsError(error, `read ${displayPath}`)
  }
}

/** A link that took the place of a file or folder since the path was found leads to what nobody has judged. */
function assertOpened(file: number, path: string): void {
  const now = pathOfOpen(file)
  if (now === undefined || isSamePath(now, path) || isSamePath(now, `${path} (deleted)`)) return
  throw leadsElsewhere(path)
}

function tooLarge({ displayPath }: FsTarget, maxBytes: number): FsError {
  return new FsError('FS_TOO_LARGE', `${displayPath} is larger than ${maxBytes} bytes`)
}
