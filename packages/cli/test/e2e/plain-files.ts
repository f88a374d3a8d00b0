import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'

/** All files but those of the compile cache, which holds code of dsh alone. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !entry.parentPath.includes('/.dsh/cache/'))
    .map(entry => join(entry.parentPath, entry.name))
}

/** The bytes of a file, its frames decompressed where it is a log. */
export function plainBytes(file: string): Buffer {
  const bytes = readFileSync(file)
  if (!file.endsWith('.zst')) return bytes
  const magic = bytes.subarray(0, 4)
  const parts: Buffer[] = []
  for (let start = 0; start !== -1 && start < bytes.length;) {
    const next = bytes.indexOf(magic, start + 4)
    parts.push(zstdDecompressSync(bytes.subarray(start, next === -1 ? undefined : next)))
    start = next
  }
  return Buffer.concat(parts)
}
