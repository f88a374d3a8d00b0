import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import type { SessionEvent, SessionId } from '@dsh/protocol'
import type { StorePlace } from '../../testing/index.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { Database } from './database.ts'
import type { DatabaseOptions } from './database.ts'
import { SqliteMedium } from './medium.ts'

export interface SqlitePlace extends Required<StorePlace> {
  readonly folder: string
  readonly path: string
  open(options?: Partial<DatabaseOptions>): SqliteMedium
  /** What a person, or another program, does to the database. */
  tamper(sql: string): void
}

/** A folder of a test's own, with media that end with the test. */
export function setUp(t: TestContext, options: Partial<DatabaseOptions> = {}): SqlitePlace {
  const folder = mkdtempSync(join(tmpdir(), 'store-sqlite-'))
  const path = join(folder, 'sessions.sqlite')
  const host = { processes: createLocalProcesses(), now: () => Date.now() }
  const opened: SqliteMedium[] = []
  t.after(async () => {
    for (const medium of opened) await medium.close()
    chmodSync(folder, 0o700)
    rmSync(folder, { recursive: true })
  })
  const tamper = (sql: string): void => {
    const database = new DatabaseSync(path)
    database.exec(sql)
    database.close()
  }
  return {
    folder,
    path,
    pid: host.processes.self().pid,
    open(own = {}) {
      const all = { path, journalMode: 'wal', busyTimeoutMs: 5000, ...options, ...own } as const
      const medium = new SqliteMedium(new Database(all), host)
      opened.push(medium)
      return medium
    },
    tamper,
    damage(id: SessionId, seq: number) {
      const key = `(SELECT key FROM sessions WHERE id = '${id}' AND kept_at IS NULL)`
      tamper(
        `UPDATE events SET event = replace(event, '"seq"', '"sEq"') WHERE session = ${key} AND seq = ${seq}`,
      )
    },
  }
}

/** Stores a log, `size` events at once. */
export async function storeLog(
  place: Pick<SqlitePlace, 'open'>,
  header: Parameters<SqliteMedium['begin']>[0],
  events: readonly SessionEvent[],
  size = events.length,
): Promise<void> {
  const medium = place.open()
  const writer = medium.begin(header)
  for (let at = 0; at < events.length; at += size) await writer.append(events.slice(at, at + size))
  await writer.close()
  await medium.close()
}
