import { stat } from 'node:fs/promises'
import { nearest } from '@dsh/harness/kernel'
import type { SessionPersistence, SessionRow } from '@dsh/harness/session'
import { usageError } from './errors.ts'
import { oneLine } from './text.ts'

type Lister = Pick<SessionPersistence, 'list'>

const shownCandidates = 8

/** The session whose id is `word` or begins with it. Throws a usage error where none or several do. */
export async function findSession(store: Lister, word: string): Promise<SessionRow> {
  const rows = await store.list()
  const exact = rows.find(({ id }) => id === word)
  if (exact !== undefined) return exact
  const matches = rows.filter(({ id }) => id.startsWith(word))
  const [first] = matches
  if (first === undefined) {
    const hint = nearest(
      word,
      rows.map(({ id }) => id),
    )
    throw usageError('UNKNOWN_SESSION', `no session begins with "${oneLine(word)}"${hint}`, 'dsh session ls')
  }
  if (matches.length === 1) return first
  const ids = matches.slice(0, shownCandidates).map(({ id }) => id)
  const more = matches.length > ids.length ? `, and ${matches.length - ids.length} more` : ''
  throw usageError(
    'AMBIGUOUS_SESSION',
    `${matches.length} sessions begin with "${word}": ${ids.join(', ')}${more}`,
    'dsh session ls',
  )
}

/**
 * The session of `folder` that was written last. Those that are not a person's, of subagents and replays, are no one's to continue. One that was written
 * later and cannot be read is told of: nobody should go on with an old one unawares.
 */
export async function newestSession(
  store: Lister & Pick<SessionPersistence, 'locate'>,
  folder: string,
  tell: (text: string) => void = () => undefined,
): Promise<SessionRow> {
  const rows = await store.list()
  const readable = rows.flatMap(row => ('header' in row ? [row] : []))
  const own = readable.filter(({ header }) => header.cwd === folder && header.origin === undefined)
  const [newest] = own.toSorted((a, b) => b.updatedAt - a.updatedAt)
  for (const row of rows) {
    if ('header' in row || store.locate({ version: 0, id: row.id, createdAt: 0, cwd: folder }) !== row.path)
      continue
    const { mtimeMs } = await stat(row.path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (mtimeMs > (newest?.updatedAt ?? 0))
      tell(`session ${row.id} may be newer and cannot be read: ${row.problem}`)
  }
  if (newest !== undefined) return newest
  throw usageError('NO_SESSION', `there is no session of "${folder}" to go on with`, 'dsh session ls')
}
