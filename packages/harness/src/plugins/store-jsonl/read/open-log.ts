import { sessionFormatVersion } from '@dsh/protocol'
import type { SessionHeader, SessionId } from '@dsh/protocol'
import { damagedLog, newerFormatText, PersistenceError } from '../../persistence/index.ts'
import { getArtifact } from '../files/artifacts.ts'
import { storeError } from '../files/errors.ts'
import type { FileSystem, OpenFile } from '../files/file-system.ts'
import { revisionOf } from '../files/find.ts'
import { pathsIn } from '../files/layout.ts'
import type { GetText } from './resolve.ts'

/** Where one session is stored. */
export interface LogPlace {
  readonly id: SessionId
  readonly folder: string
}

export interface OpenedFile {
  readonly file: OpenFile
  readonly size: number
  readonly revision: string
}

/** Opens a log for reading; the caller closes it. Rejects with SESSION_DAMAGED where there is no file. */
export async function openLog(fs: FileSystem, { id, folder }: LogPlace): Promise<OpenedFile> {
  const path = pathsIn(folder).log
  try {
    const file = await fs.open(path, 'read')
    try {
      const stat = await file.stat()
      if (stat.kind !== 'file') throw damagedLog(id, 'this is no file', path)
      return { file, size: stat.size, revision: revisionOf(stat) }
    } catch (error) {
      await file.close()
      throw error
    }
  } catch (error) {
    throw storeError(error, id, path, 'read')
  }
}

/** The same for as long as `job` takes. */
export async function withLog<T>(
  fs: FileSystem,
  place: LogPlace,
  job: (opened: OpenedFile) => Promise<T>,
): Promise<T> {
  const opened = await openLog(fs, place)
  try {
    return await job(opened)
  } catch (error) {
    throw storeError(error, place.id, pathsIn(place.folder).log, 'read')
  } finally {
    await opened.file.close()
  }
}

export function textsBeside(fs: FileSystem, { folder }: LogPlace): GetText {
  const { artifacts } = pathsIn(folder)
  return sha256 => getArtifact(fs, artifacts, sha256)
}

/** Rejects a log that is another's, which a copied folder holds: one session must not be written into another's log. */
export function assertOwn(header: SessionHeader, { id, folder }: LogPlace): void {
  if (header.id !== id) throw new PersistenceError('SESSION_DAMAGED', foreignText(header, { id, folder }))
}

export function foreignText(header: SessionHeader, { id, folder }: LogPlace): string {
  return `the folder of session "${id}" holds the log of session "${header.id}": ${pathsIn(folder).log}`
}

/** Rejects a log that this version must not write. */
export function assertWritable(header: SessionHeader, place: LogPlace): void {
  assertOwn(header, place)
  if (header.version > sessionFormatVersion)
    throw new PersistenceError(
      'SESSION_FORMAT_NEWER',
      newerFormatText(header.version, pathsIn(place.folder).log),
    )
}
