/** Sessions as rows of one SQLite file, which `sqlite3` can read: another medium for what `store-jsonl` keeps in files. */
import { resolve } from 'node:path'
import { _default, enum as oneOf, gte, int, lte, minLength, strictObject, string } from 'zod/mini'
import { MAX_TIMER_DELAY_MS } from '../../kernel/index.ts'
import type { ConfigSchema, Context, PluginObject } from '../../kernel/index.ts'
import { createLocalProcesses, mountPersistence } from '../persistence/index.ts'
import { Database } from './database.ts'
import type { JournalMode } from './database.ts'
import { SqliteMedium } from './medium.ts'
import { memoryPath } from './place.ts'

export interface StoreSqliteConfig {
  /** The database; made when the first session is stored. ':memory:' keeps nothing. */
  readonly path: string
  /** How SQLite makes writes whole. Default 'wal', which needs a file system of this machine. */
  readonly journalMode?: JournalMode
  /** How long another program's write is waited for, in ms. Default 5000. */
  readonly busyTimeoutMs?: number
  /** How long the first event of a batch waits for others, in ms. Default 200. */
  readonly writeBatchMaxDelayMs?: number
  /** How many sessions that were prepared and given back untouched are kept for the next who asks. Default 5. */
  readonly preparedSessionCacheSize?: number
}

type CheckedConfig = Required<StoreSqliteConfig>

function configSchema(): ConfigSchema<StoreSqliteConfig, CheckedConfig> {
  const delay = int().check(gte(1), lte(MAX_TIMER_DELAY_MS))
  const wait = int().check(gte(0), lte(MAX_TIMER_DELAY_MS))
  return strictObject({
    path: string().check(minLength(1)),
    journalMode: _default(oneOf(['wal', 'delete', 'truncate', 'persist']), 'wal'),
    busyTimeoutMs: _default(wait, 5000),
    writeBatchMaxDelayMs: _default(delay, 200),
    preparedSessionCacheSize: _default(int().check(gte(1)), 5),
  }) as unknown as ConfigSchema<StoreSqliteConfig, CheckedConfig>
}

/** Keeps all sessions in the database at `path`. */
export const storeSqlite: PluginObject<StoreSqliteConfig, CheckedConfig> = {
  name: 'store-sqlite',
  inject: ['sessions'],
  get Config() {
    return configSchema()
  },
  apply(ctx: Context, { path, journalMode, busyTimeoutMs, ...options }) {
    const place = path === memoryPath ? path : resolve(path)
    const database = new Database({ path: place, journalMode, busyTimeoutMs })
    const host = { processes: createLocalProcesses(), now: () => Date.now() }
    mountPersistence(ctx, new SqliteMedium(database, host), options)
  },
}
