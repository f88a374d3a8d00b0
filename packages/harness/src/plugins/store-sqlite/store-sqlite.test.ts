import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testStore } from '../../testing/contracts/store.ts'
import { createLocalProcesses } from '../persistence/index.ts'
import { Database } from './database.ts'
import type { JournalMode } from './database.ts'
import { SqliteMedium } from './medium.ts'

for (const journalMode of ['wal', 'delete'] satisfies JournalMode[])
  testStore(`store-sqlite (${journalMode})`, t => {
    const folder = mkdtempSync(join(tmpdir(), 'store-sqlite-'))
    const path = join(folder, 'sessions.sqlite')
    const host = { processes: createLocalProcesses(), now: () => Date.now() }
    const opened: SqliteMedium[] = []
    t.after(async () => {
      for (const medium of opened) await medium.close()
      rmSync(folder, { recursive: true })
    })
    return {
      open() {
        const database = new Database({ path, journalMode, busyTimeoutMs: 5000 })
        const medium = new SqliteMedium(database, host)
        opened.push(medium)
        return medium
      },
      pid: process.pid,
      damage(id, seq) {
        const database = new DatabaseSync(path)
        const key = '(SELECT key FROM sessions WHERE id = ? AND kept_at IS NULL)'
        const event = 'replace(event, \'"seq"\', \'"sEq"\')'
        database.prepare(`UPDATE events SET event = ${event} WHERE session = ${key} AND seq = ?`).run(id, seq)
        database.close()
      },
    }
  })
