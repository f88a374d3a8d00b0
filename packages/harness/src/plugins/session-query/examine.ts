import { open, stat } from 'node:fs/promises'
import { applicationId, schemaVersion } from './schema.ts'

/**
 * What the file of an index is: ours and of use; made anew at the next question, whether of another version, cut short
 * or no database at all; or the database of another program, which is never touched.
 */
export type IndexState = 'absent' | 'sound' | 'other version' | 'cut short' | 'no database' | 'foreign'

const magic = 'SQLite format 3\0'
const headBytes = 100
/** Places in the head of an SQLite file. */
const at = { pageSize: 16, changes: 24, pages: 28, userVersion: 60, applicationId: 68, pagesValidFor: 92 }

/** Looks at the head of the file alone, and without SQLite, which would make files beside it. */
export async function examineIndex(path: string): Promise<IndexState> {
  const found = await unlessAbsent(open(path, 'r'))
  if (found === undefined) return 'absent'
  try {
    const { size } = await found.stat()
    const head = Buffer.alloc(headBytes)
    const { bytesRead } = await found.read(head, 0, headBytes, 0)
    const hasLog = ((await unlessAbsent(stat(`${path}-wal`)))?.size ?? 0) > 0
    if (size === 0) return 'sound'
    return judge(head.subarray(0, bytesRead), { size, hasLog })
  } finally {
    await found.close()
  }
}

function judge(
  head: Buffer,
  { size, hasLog }: { readonly size: number; readonly hasLog: boolean },
): IndexState {
  if (head.length < headBytes || head.toString('latin1', 0, magic.length) !== magic) return 'no database'
  // The newest head may stand in the log beside it.
  const id = head.readUInt32BE(at.applicationId)
  if (id !== applicationId) return id === 0 && hasLog ? 'sound' : 'foreign'
  const pageSize = head.readUInt16BE(at.pageSize) === 1 ? 65_536 : head.readUInt16BE(at.pageSize)
  const isCounted = head.readUInt32BE(at.changes) === head.readUInt32BE(at.pagesValidFor)
  if (isCounted && !hasLog && head.readUInt32BE(at.pages) * pageSize > size) return 'cut short'
  return head.readUInt32BE(at.userVersion) === schemaVersion || hasLog ? 'sound' : 'other version'
}

async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
