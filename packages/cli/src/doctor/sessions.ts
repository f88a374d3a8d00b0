import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sessionReader } from '@dsh/harness/presets/headless'
import type { SessionPersistence, ReadableRow, SessionRow, UnreadableRow } from '@dsh/harness/session'
import { assertStore, compositionFiles } from '../composition.ts'
import { quoted } from '../errors.ts'
import { counted } from '../text.ts'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'
import { lookAtLogs } from './logs.ts'

/** The store, each row of its list, and as many logs as there is time for. */
export async function lookAtSessions(place: Place): Promise<Findings> {
  const { home, env } = place
  const { ctx, ...reader } = await sessionReader({ home, env, files: compositionFiles(home) })
  try {
    assertStore(ctx, place)
    const sessions = ctx.sessionPersistence
    return await lookAtRows(sessions, place)
  } finally {
    await reader.close()
  }
}

async function lookAtRows(sessions: SessionPersistence, place: Place): Promise<Findings> {
  const rows = await sessions.list()
  const readable = rows.flatMap(row => ('header' in row ? [row] : []))
  const found = rows.flatMap(row => ('header' in row ? locksOf(row) : [unreadable(row, place)]))
  const { checked, faults } = await lookAtLogs(sessions, readable, place)
  return [summary(rows, checked, place), ...found, ...faults]
}

function summary(rows: readonly SessionRow[], checked: number, { command }: Place): Findings[number] {
  const open = rows.filter(row => 'header' in row && row.holder !== undefined).length
  const parts = [
    counted(rows.length, 'session'),
    ...(open === 0 ? [] : [`${open} open`]),
    checked === rows.length
      ? 'all of them checked'
      : `${checked} of the newest checked; all: ${command} doctor --deep`,
  ]
  return ok(rows.length === 0 ? 'no sessions yet' : parts.join(' · '))
}

function unreadable({ id, problem: why }: UnreadableRow, { command }: Place): Findings[number] {
  return problem('SESSION_UNREADABLE', `${id}: ${why}`, `${command} session verify ${quoted(id)}`)
}

/** A lock that nobody can be asked about keeps writers out for good; that of a dead program is taken over. */
function locksOf({ id, path, holder }: ReadableRow): Findings {
  const lock = join(dirname(path), 'lock')
  if (holder === undefined)
    return existsSync(lock)
      ? [note('LOCK_OF_DEAD', `${id} was left open by a program that is gone; the next one takes it over`)]
      : []
  if (holder.pid !== 0) return []
  return [
    problem(
      'LOCK_UNREADABLE',
      `${id} is open elsewhere, by whom cannot be read`,
      `rm -r ${quoted(lock)}   # once no dsh works on it`,
    ),
  ]
}
