import { messageOf } from '@dsh/harness/kernel'
import type { Context } from '@dsh/harness/kernel'
import type { PointFile, RestorePoint } from '@dsh/harness/plugins/rewind'
import type { Session } from '@dsh/harness/session'

/** The files of a session's folder at some moment, or why nobody knows them. */
export type FilesThen =
  | { readonly point: RestorePoint; readonly list: readonly PointFile[] }
  | { readonly missing: string }

export async function filesThen(ctx: Context, session: Session, seq: number): Promise<FilesThen> {
  const rewind = ctx.get('rewind')
  if (rewind === undefined) return { missing: 'no plugin keeps restore points' }
  const point = rewind.pointAt(session, seq)
  if (point === undefined) return { missing: `no restore point is as old as event #${seq}` }
  try {
    return { point, list: await rewind.filesAt(point) }
  } catch (error) {
    return { missing: messageOf(error) }
  }
}

export interface ChangedFile {
  readonly path: string
  readonly change: 'added' | 'deleted' | 'changed'
}

/** What is different in `after`, in the order of the paths. */
export function changedBetween(before: readonly PointFile[], after: readonly PointFile[]): ChangedFile[] {
  const old = new Map(before.map(file => [file.path, file]))
  const now = new Map(after.map(file => [file.path, file]))
  const paths = [...new Set([...old.keys(), ...now.keys()])].toSorted()
  return paths.flatMap(path => {
    const [was, is] = [old.get(path), now.get(path)]
    if (was === undefined) return { path, change: 'added' }
    if (is === undefined) return { path, change: 'deleted' }
    const isSame = was.oid === is.oid && was.mode === is.mode && was.kind === is.kind
    return isSame ? [] : { path, change: 'changed' }
  })
}
