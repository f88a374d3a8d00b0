import { dirname, join } from 'node:path'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import type { RepairedBranch } from '../../persistence/index.ts'
import { putArtifact } from '../files/artifacts.ts'
import { errnoOf, hasNoLinks, unlessMissing } from '../files/file-system.ts'
import type { FileSystem } from '../files/file-system.ts'
import { encodeFrame } from '../format/frames.ts'
import { copyFile } from '../files/keep.ts'
import { pathsIn, sessionFolder } from '../files/layout.ts'
import { underLock } from '../files/lock.ts'
import type { LockHost } from '../files/lock.ts'
import type { LogPlace } from '../read/open-log.ts'
import { isDraft, makeFolder, publishWith } from '../files/publish.ts'
import { toHeaderLine } from '../format/records.ts'
import { LogDraft } from '../format/write-log.ts'

export interface BranchOrigin {
  /** Of the log that the branch leaves. */
  readonly header: SessionHeader
  readonly toolStart: boolean
  readonly place: LogPlace
  readonly seedLength: number
  /** That of the branch's last frame. */
  readonly hash: string
}

/**
 * Stores a branch as a session of its own, beside the one it leaves and with all that lies beside that. The id follows
 * from what is in the branch, so that a repair that was broken off makes no second one.
 */
export async function storeBranch(
  host: LockHost,
  origin: BranchOrigin,
  batches: AsyncIterable<readonly SessionEvent[]>,
): Promise<RepairedBranch> {
  const { place, seedLength, hash, toolStart } = origin
  const id = SessionId(`${place.id}-branch-${hash.slice(0, 8)}`)
  const header: SessionHeader = { ...origin.header, id, parentSession: place.id, seedLength }
  const folder = join(dirname(place.folder), sessionFolder(id))
  const { log, lock: path, artifacts } = pathsIn(folder)
  const from = pathsIn(place.folder).artifacts
  let events = 0
  const count = async function* (): AsyncGenerator<readonly SessionEvent[]> {
    for await (const batch of batches) {
      events += batch.length
      yield batch
    }
  }
  await makeFolder(host.fs, folder)
  await underLock(path, host, async () => {
    if ((await unlessMissing(host.fs.stat(log))) !== undefined) {
      // An earlier repair stored it, and somebody may have gone on with it.
      for await (const _ of count());
      return
    }
    await copyArtifacts(host.fs, from, artifacts)
    const keep = async (bytes: Uint8Array): Promise<string> => {
      await makeFolder(host.fs, artifacts)
      return (await putArtifact(host.fs, artifacts, bytes, 'text/plain')).sha256
    }
    await publishWith(host.fs, log, async file => {
      const draft = new LogDraft(file)
      await draft.add(encodeFrame(toHeaderLine(header, { toolStart })))
      for await (const batch of count()) await draft.addEvents(batch, keep)
    })
  })
  return { header, events }
}

async function copyArtifacts(fs: FileSystem, from: string, to: string): Promise<void> {
  const names = (await unlessMissing(fs.readdir(from))) ?? []
  if (names.length === 0) return
  await makeFolder(fs, to)
  for (const name of names) if (!isDraft(name)) await copyInto(fs, join(from, name), join(to, name))
  await fs.syncFolder(to)
}

async function copyInto(fs: FileSystem, from: string, to: string): Promise<void> {
  try {
    await fs.link(from, to)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return
    if (!hasNoLinks(error)) throw error
    await copyFile(fs, from, to)
  }
}
