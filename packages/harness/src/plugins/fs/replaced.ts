import type { BigIntStats } from 'node:fs'
import { lookAt, versionOf } from './identity.ts'
import type { FsVersion } from './service.ts'

interface Replaced {
  /** Undefined where the file is gone again. */
  readonly version: FsVersion | undefined
  readonly otherLinks?: number
  readonly ownerLost?: boolean
}

/** The file as it is after a change, and what it lost by getting a new inode. */
export async function lookAtReplaced(path: string, before: BigIntStats | undefined): Promise<Replaced> {
  const now = await lookAt(path)
  if (now === undefined) return { version: undefined }
  const otherLinks = before === undefined ? 0 : Number(before.nlink) - 1
  const ownerLost = before !== undefined && (before.uid !== now.uid || before.gid !== now.gid)
  return {
    version: versionOf(now),
    ...(otherLinks > 0 && { otherLinks }),
    ...(ownerLost && { ownerLost }),
  }
}
