import { hash } from 'node:crypto'
import { join } from 'node:path'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { promisify } from 'node:util'
import { errnoOf, isNoFile, unlessMissing } from './file-system.ts'
import type { FileSystem } from './file-system.ts'
import { publishFile } from './publish.ts'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)
const compression = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

const textTypes = /^(text\/|application\/(json|xml)\b)/
const isHash = /^[0-9a-f]{64}$/

/** Keeps `bytes` under their hash in `folder`, which must be there, once. Text is compressed. */
export async function putArtifact(
  fs: FileSystem,
  folder: string,
  bytes: Uint8Array,
  type: string,
): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const sha256 = hash('sha256', bytes, 'hex')
  const isText = textTypes.test(type)
  const path = join(folder, isText ? `${sha256}.zst` : sha256)
  // What is there may be from before a power failure, so its bytes are looked at and not its name alone.
  // And its name may not be durable: whoever put it there may have died, or failed, before that was done.
  if (await hasArtifact(fs, folder, sha256)) await fs.syncFolder(folder)
  else await publishFile(fs, path, isText ? await compress(bytes, compression) : bytes)
  return { sha256, bytes: bytes.length }
}

/** The bytes with this hash, or undefined where they are missing or are others by now. */
export async function getArtifact(
  fs: FileSystem,
  folder: string,
  sha256: string,
): Promise<Buffer | undefined> {
  // Hashes come from logs, which are foreign text, and become file names here.
  if (!isHash.test(sha256)) return undefined
  const path = join(folder, sha256)
  const plain = await readFileAt(fs, path)
  const bytes = plain ?? (await decoded(await readFileAt(fs, `${path}.zst`)))
  return bytes !== undefined && hash('sha256', bytes, 'hex') === sha256 ? bytes : undefined
}

async function hasArtifact(fs: FileSystem, folder: string, sha256: string): Promise<boolean> {
  return (await getArtifact(fs, folder, sha256)) !== undefined
}

/** What is there and no file is as good as missing. */
async function readFileAt(fs: FileSystem, path: string): Promise<Buffer | undefined> {
  return unlessMissing(fs.read(path)).catch((error: unknown) => {
    if (isNoFile(error)) return undefined
    throw error
  })
}

async function decoded(bytes: Buffer | undefined): Promise<Buffer | undefined> {
  if (bytes === undefined) return undefined
  try {
    return await decompress(bytes)
  } catch (error) {
    if (errnoOf(error)?.startsWith('ZSTD_') === true || errnoOf(error)?.startsWith('Z_') === true)
      return undefined
    throw error
  }
}
