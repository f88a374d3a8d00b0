import type { DatabaseSync } from 'node:sqlite'
import type { SessionId } from '@dsh/protocol'
import type { Needle } from './needle.ts'
import type { EventPlaceFilter, EventSurface } from './service.ts'

/** Where to look: in the file or among the live documents, and for which sessions, by their keys there. */
export interface Shelf {
  readonly place: 'stored' | 'live'
  readonly keys: ReadonlyMap<number, SessionId>
}

export interface FoundEvent {
  readonly place: Shelf['place']
  readonly session: SessionId
  readonly document: number
  readonly seq: number
  readonly type: string
  readonly time: number
  readonly surface: EventSurface
  readonly length: number
  readonly matches: number
  /** How many events of its session match. */
  readonly matched: number
}

export interface FindOptions {
  readonly filters: readonly EventPlaceFilter[]
  /** How many events of a session are given at most, the best. */
  readonly perSession: number
}

type Value = string | number

const tables = {
  stored: { documents: 'main.documents', words: 'words' },
  live: { documents: 'temp.live_documents', words: 'live_words' },
} as const

const spellingsAtMost = 200

/** The matching events of one shelf, the best of each session first. */
export function findOn(
  db: DatabaseSync,
  { place, keys }: Shelf,
  needle: Needle,
  { filters, perSession }: FindOptions,
): readonly FoundEvent[] {
  if (keys.size === 0) return []
  db.function('matches_in', { deterministic: true }, text => needle.countIn(String(text)))
  const candidates = candidatesOf(place, needle)
  const places = filters.map(placeOf)
  const rows = db
    .prepare(
      `WITH candidates AS MATERIALIZED (${candidates.sql}),
       counted AS MATERIALIZED (
         SELECT d.id, d.session, d.seq, d.type, d.time, d.surface, d.length, matches_in(d.text) AS matches
         FROM candidates c JOIN ${tables[place].documents} d ON d.id = c.id
         WHERE d.session IN (SELECT value FROM json_each(?)) ${places.map(({ sql }) => `AND ${sql}`).join(' ')}
       ),
       ranked AS (
         SELECT *, row_number() OVER best AS place, count(*) OVER (PARTITION BY session) AS matched
         FROM counted WHERE matches > 0
         WINDOW best AS (PARTITION BY session ORDER BY matches DESC, length, time DESC, seq)
       )
       SELECT * FROM ranked WHERE place <= ? ORDER BY session, place`,
    )
    .all(
      ...candidates.values,
      JSON.stringify([...keys.keys()]),
      ...places.flatMap(({ values }) => values),
      perSession,
    )
  return rows.flatMap(row => {
    const session = keys.get(Number(row['session']))
    if (session === undefined) return []
    return [
      {
        place,
        session,
        document: Number(row['id']),
        seq: Number(row['seq']),
        type: String(row['type']),
        time: Number(row['time']),
        surface: row['surface'] as EventSurface,
        length: Number(row['length']),
        matches: Number(row['matches']),
        matched: Number(row['matched']),
      },
    ]
  })
}

export function textOfFound(db: DatabaseSync, { place, document }: FoundEvent): string {
  const row = db.prepare(`SELECT text FROM ${tables[place].documents} WHERE id = ?`).get(document)
  return String(row?.['text'] ?? '')
}

/** Those that hold it most often first, then the shorter, the newer; never in an order that is left to chance. */
export function byRank(a: FoundEvent, b: FoundEvent): number {
  return (
    b.matches - a.matches ||
    a.length - b.length ||
    b.time - a.time ||
    (a.session < b.session ? -1 : a.session > b.session ? 1 : 0) ||
    a.seq - b.seq
  )
}

interface Clause {
  readonly sql: string
  readonly values: readonly Value[]
}

/** Events that may hold the text: the index knows runs of it. What is too short for that is looked for everywhere. */
function candidatesOf(place: Shelf['place'], needle: Needle): Clause {
  const { documents, words } = tables[place]
  const { runs } = needle
  if (runs !== undefined)
    return { sql: `SELECT rowid AS id FROM ${words} WHERE ${words} MATCH ?`, values: [runs] }
  const spellings = needle.spellings.filter((_, index) => index < spellingsAtMost)
  const any = spellings.map(() => 'instr(text, ?) > 0').join(' OR ')
  return { sql: `SELECT id FROM ${documents} WHERE ${any}`, values: spellings }
}

function placeOf(filter: EventPlaceFilter): Clause {
  switch (filter.kind) {
    case 'seq':
    case 'time':
      return rangeOf(filter.kind, filter)
    case 'type':
    case 'surface':
      return {
        sql: `d.${filter.kind} IN (SELECT value FROM json_each(?))`,
        values: [JSON.stringify(filter.values)],
      }
  }
}

function rangeOf(
  column: 'seq' | 'time',
  {
    from = Number.MIN_SAFE_INTEGER,
    to = Number.MAX_SAFE_INTEGER,
  }: { readonly from?: number; readonly to?: number },
): Clause {
  return { sql: `d.${column} BETWEEN ? AND ?`, values: [from, to] }
}
