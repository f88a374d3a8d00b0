import type { SessionId } from '@dsh/protocol'
import { messageOf } from '../../kernel/index.ts'
import { beginWriting, isDamage, isWriteTrouble } from './database.ts'
import { SessionQueryError } from './errors.ts'
import type { IndexedLog } from './index-rows.ts'
import type { OpenIndex } from './log-index.ts'
import { readLog } from './log-reader.ts'
import type { ReadOptions } from './log-reader.ts'
import type { LeftSession } from './service.ts'
import type { MarkedRecord, Sources } from './sources.ts'

export interface ReconcileOptions extends ReadOptions {
  /** What the index holds at the beginning. */
  readonly known: ReadonlyMap<SessionId, IndexedLog>
  readonly onProgress?: ((done: number, total: number) => void) | undefined
}

const busyText = 'another program writes the index'
const laterText = 'not read to its end yet'
const readOnlyText = 'it is newer than the index, which cannot be written'

/**
 * Reads what the index lacks of these logs, in their order. Gives those of which it does not hold everything; one that
 * cannot be read leaves the others alone.
 */
export async function reconcile(
  index: OpenIndex,
  sources: Sources,
  wanted: readonly MarkedRecord[],
  options: ReconcileOptions,
): Promise<readonly LeftSession[]> {
  const { known } = options
  const stale = wanted.filter(marked => isStale(marked, known.get(marked.record.id)))
  const left: LeftSession[] = []
  const patience = new Patience(options.patienceMs)
  for (const [done, marked] of stale.entries()) {
    options.onProgress?.(done, stale.length)
    const reason = await readOne(index, sources, marked, { ...options, patienceMs: patience.left })
    if (reason === busyText) patience.spend()
    if (reason !== undefined) left.push({ id: marked.record.id, reason })
  }
  if (stale.length > 0) options.onProgress?.(stale.length, stale.length)
  return left
}

/** Removes what is stored no more. */
export async function dropVanished(
  index: OpenIndex,
  stored: ReadonlySet<SessionId>,
  { known, patienceMs }: Pick<ReconcileOptions, 'known' | 'patienceMs'>,
): Promise<void> {
  const vanished = [...known.values()].filter(({ id }) => !stored.has(id))
  if (vanished.length === 0 || !index.isWritable) return
  await written(index, patienceMs, () => {
    for (const { key } of vanished) index.rows.remove(key)
  })
}

/** Removes what the index holds of one log. Where it cannot be written now, the next search does. */
export async function dropLog(index: OpenIndex, id: SessionId, patienceMs: number): Promise<void> {
  const log = index.rows.get(id)
  if (log === undefined || !index.isWritable) return
  await written(index, patienceMs, () => index.rows.remove(log.key))
}

/** Removes the documents of the oldest logs, the last of `newestFirst`, until the index is well within its size. */
export async function makeRoomIn(
  index: OpenIndex,
  newestFirst: readonly MarkedRecord[],
  limit: { readonly maxBytes: number; readonly patienceMs: number },
): Promise<void> {
  if (!index.isWritable || usedBytes(index) <= limit.maxBytes) return
  await written(index, limit.patienceMs, () => {
    for (const { record } of newestFirst.toReversed()) {
      if (usedBytes(index) <= limit.maxBytes * 0.8) return
      const log = index.rows.get(record.id)
      if (log?.hasDocuments === true) index.rows.removeDocuments(log.key)
    }
  })
}

function isStale({ record, revision }: MarkedRecord, known: IndexedLog | undefined): boolean {
  if (record.live) return false
  return known === undefined || known.revision === '' || known.revision !== revision
}

async function readOne(
  index: OpenIndex,
  sources: Sources,
  marked: MarkedRecord,
  options: ReadOptions,
): Promise<string | undefined> {
  if (!index.isWritable) return readOnlyText
  if (options.deadline !== undefined && performance.now() >= options.deadline) return laterText
  try {
    const outcome = await readLog(index, sources, marked, options)
    if (outcome === 'done') return undefined
    return outcome === 'busy' ? busyText : laterText
  } catch (error) {
    if (options.signal?.aborted === true || error instanceof SessionQueryError) throw error
    if (isDamage(error) && !isWriteTrouble(error)) throw error
    return messageOf(error)
  }
}

async function written(index: OpenIndex, patienceMs: number, job: () => void): Promise<void> {
  if (!(await beginWriting(index.db, patienceMs))) return
  try {
    job()
    index.db.exec('COMMIT')
  } catch (error) {
    index.db.exec('ROLLBACK')
    if (!isWriteTrouble(error)) throw error
  }
}

function usedBytes({ db }: OpenIndex): number {
  const of = (name: string): number => Number(db.prepare(`PRAGMA ${name}`).get()?.[name])
  return (of('page_count') - of('freelist_count')) * of('page_size')
}

/** Waiting for others is paid for once, not for every log. */
class Patience {
  left: number

  constructor(ms: number) {
    this.left = ms
  }

  spend(): void {
    this.left = 0
  }
}
