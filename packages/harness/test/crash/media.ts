import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createLocalProcesses, isProvablyDead } from '../../src/plugins/persistence/index.ts'
import type { Medium, ProcessIdentity, Processes } from '../../src/plugins/persistence/index.ts'
import type { FileSystem } from '../../src/plugins/store-jsonl/index.ts'
import { localFileSystem } from '../../src/plugins/store-jsonl/local.ts'
import { JsonlMedium } from '../../src/plugins/store-jsonl/medium.ts'
import { Database } from '../../src/plugins/store-sqlite/database.ts'
import { SqliteMedium } from '../../src/plugins/store-sqlite/medium.ts'

export type MediumName = 'jsonl' | 'sqlite'

interface OpenOptions {
  /** Of the files of 'jsonl'. */
  readonly fs?: FileSystem
  readonly processes?: Processes
}

/** A medium as a product opens it, with its sessions below `home`. */
export function openMedium(name: MediumName, home: string, options: OpenOptions = {}): Medium {
  const { fs = localFileSystem, processes = createLocalProcesses() } = options
  const host = { processes, now: () => Date.now() }
  if (name === 'jsonl') return new JsonlMedium(join(home, 'sessions'), { ...host, fs })
  const path = databaseIn(home)
  return new SqliteMedium(new Database({ path, journalMode: 'wal', busyTimeoutMs: 5000 }), host)
}

export function databaseIn(home: string): string {
  return join(home, 'database', 'sessions.sqlite')
}

/** The processes of one start of a machine: each that asks is a new one, and lives until that start is over. */
export function processesOf(boot: number): () => Processes {
  let nextPid = boot * 1000
  return () => {
    const self: ProcessIdentity = { pid: nextPid++, start: '1', boot: String(boot), host: 'h', space: 'p' }
    return { self: () => self, isDead: other => isProvablyDead(other, self, () => ({ start: '1' })) }
  }
}

/** Every file below a folder, with its content and when it was written. */
export function fingerprintOf(folder: string): string {
  const hash = createHash('sha256')
  if (!existsSync(folder)) return ''
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
    const path = join(folder, name)
    const stat = statSync(path)
    hash.update(`${name} ${stat.mtimeMs} ${stat.ino}\n`)
    if (stat.isFile()) hash.update(readFileSync(path))
  }
  return hash.digest('hex')
}
