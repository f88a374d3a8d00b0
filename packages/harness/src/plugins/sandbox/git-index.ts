const modeAt = 24
const statLength = 40
const gitlinkMode = 0o160000

export interface GitIndex {
  /** Paths that are recorded as repositories of their own. */
  readonly gitlinks: readonly string[]
  /** The hash in the name of the index that this one only adds to. */
  readonly sharedHash: string | undefined
}

/** What cannot be read ends it: git does not read on there either. */
export function readGitIndex(index: Buffer, hashLength: number): GitIndex {
  const gitlinks: string[] = []
  const version = index.length < 12 ? 0 : index.readUInt32BE(4)
  if (index.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4)
    return { gitlinks, sharedHash: undefined }
  let [at, previous]: [number, Buffer] = [12, Buffer.alloc(0)]
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const entry = readEntry(index, at, { version, hashLength, previous })
    if (entry === undefined) return { gitlinks, sharedHash: undefined }
    previous = entry.name
    at = entry.end
    if (entry.mode === gitlinkMode) gitlinks.push(entry.name.toString('utf8'))
  }
  return { gitlinks, sharedHash: sharedHashOf(index, at, hashLength) }
}

/** Behind the entries each extension has four letters, its length, and that much. */
function sharedHashOf(index: Buffer, start: number, hashLength: number): string | undefined {
  for (let at = start; at + 8 <= index.length - hashLength; at += 8 + index.readUInt32BE(at + 4))
    if (index.toString('latin1', at, at + 4) === 'link')
      return index.toString('hex', at + 8, at + 8 + hashLength)
  return undefined
}

interface Reading {
  readonly version: number
  readonly hashLength: number
  /** The name of the entry before. */
  readonly previous: Buffer
}

interface IndexEntry {
  readonly mode: number
  readonly name: Buffer
  readonly end: number
}

function readEntry(
  index: Buffer,
  at: number,
  { version, hashLength, previous }: Reading,
): IndexEntry | undefined {
  const flagsAt = at + statLength + hashLength
  if (flagsAt + 2 > index.length) return undefined
  const mode = index.readUInt32BE(at + modeAt)
  const isExtended = version >= 3 && (index.readUInt16BE(flagsAt) & 0x4000) !== 0
  const nameAt = flagsAt + (isExtended ? 4 : 2)
  const shared = version === 4 ? readOffset(index, nameAt) : { value: previous.length, end: nameAt }
  const nameEnd = index.indexOf(0, shared.end)
  if (nameEnd < 0) return undefined
  const own = index.subarray(shared.end, nameEnd)
  const kept = previous.subarray(0, Math.max(0, previous.length - shared.value))
  const name = kept.length === 0 ? own : Buffer.concat([kept, own])
  // Up to version 3 entries are filled up with one to eight NUL to a multiple of eight.
  const end = version === 4 ? nameEnd + 1 : at + (((nameEnd - at) >> 3) + 1) * 8
  return { mode, name, end }
}

/** A number as git writes it in packs: seven bits a byte, each further byte one more. */
function readOffset(index: Buffer, at: number): { readonly value: number; readonly end: number } {
  let end = at
  let byte = index[end++] ?? 0
  let value = byte & 0x7f
  while ((byte & 0x80) !== 0 && end < index.length) {
    byte = index[end++] ?? 0
    value = (value + 1) * 128 + (byte & 0x7f)
  }
  return { value, end }
}
