import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { CrashLedger, examine, randomOf, watchMedium } from '../../src/testing/index.ts'
import type { Expectations, Random } from '../../src/testing/index.ts'
import { startProgram } from '../../src/testing/contracts/store-program.ts'
import { turnOf } from '../../src/testing/contracts/store-samples.ts'
import { databaseIn, openMedium, processesOf } from './media.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'
import { create, store } from './scenarios.ts'

/** The files of a database at one moment, and what was acknowledged by then. */
interface Moment {
  readonly database: Buffer
  readonly wal: Buffer
  readonly expectations: Expectations
}

export interface PowerOptions {
  readonly seed: string
  readonly states: number
  /** So many bytes that were synced are lost all the same: a disk that lies. */
  readonly lie?: number
}

/** A database whose power fails: while a transaction is written, and while the write-ahead log goes into the database. */
export async function failPower({ seed, states, lie = 0 }: PowerOptions): Promise<Row> {
  const tally = new Tally('power failures of a database (sqlite)')
  const random = randomOf(`${seed} sqlite power`)
  const { moments, after } = await writeTurns(random)
  const shared = join(memoryFolder(), 'crash-sqlite-')
  for (let count = 0; count < states; count += 1) {
    const isCheckpoint = lie === 0 && count % 4 === 0
    const index = random.below(moments.length - 1)
    const [before, next] = [moments[index], moments[index + 1]] as readonly [Moment, Moment]
    const left = isCheckpoint
      ? halfCheckpoint(moments.at(-1) ?? before, after, random)
      : tornWal(before, next, lie, random)
    const home = mkdtempSync(shared)
    layDown(home, left)
    const open = processesOf(2)
    const place = { open: () => openMedium('sqlite', home, { processes: open() }) }
    tally.add(left.text, await examine({ place }, left.expectations))
    rmSync(home, { recursive: true })
  }
  return tally.row
}

/** Power failures are made of copies, so that no real disk is needed. */
export function memoryFolder(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
}

export function layDown(home: string, { database, wal }: Pick<Moment, 'database' | 'wal'>): void {
  const path = databaseIn(home)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, database, { mode: 0o600 })
  writeFileSync(`${path}-wal`, wal, { mode: 0o600 })
}

export function filesIn(home: string): Pick<Moment, 'database' | 'wal'> {
  const path = databaseIn(home)
  const read = (each: string): Buffer => (existsSync(each) ? readFileSync(each) : Buffer.alloc(0))
  return { database: read(path), wal: read(`${path}-wal`) }
}

async function writeTurns(
  random: Random,
): Promise<{ readonly moments: readonly Moment[]; readonly after: Buffer }> {
  const home = mkdtempSync(join(memoryFolder(), 'crash-sqlite-'))
  const ledger = new CrashLedger(() => 0)
  const open = processesOf(1)
  const program = await startProgram({
    open: () => watchMedium(openMedium('sqlite', home, { processes: open() }), ledger),
  })
  const session = create(program)
  const moments: Moment[] = []
  for (let turn = 1; turn <= 24; turn += 1) {
    if (turn % 5 === 0) await session.artifacts.put(random.bytes(300), 'image/png')
    await store(
      program,
      session,
      ...turnOf(`${turn} ${'x'.repeat(random.below(turn % 6 === 0 ? 80_000 : 3000))}`, turn),
    )
    moments.push({ ...filesIn(home), expectations: new Map(ledger.current) })
  }
  await program.stop()
  const after = filesIn(home).database
  rmSync(home, { recursive: true })
  return { moments, after }
}

type Left = Moment & { readonly text: string }

/** The transaction between two moments reached the disk in part. */
function tornWal(before: Moment, next: Moment, lie: number, random: Random): Left {
  const safe = Math.max(0, before.wal.length - lie)
  const at = safe + random.below(next.wal.length - safe)
  const kind = random.pick(['cut', 'zeros', 'garbage'] as const)
  const head = next.wal.subarray(0, at)
  const rest = next.wal.length - at
  const tail = { cut: Buffer.alloc(0), zeros: Buffer.alloc(rest), garbage: random.bytes(rest) }[kind]
  const events = [...next.expectations].map(([id, expected]) => {
    const known = before.expectations.get(id)
    return [id, { ...expected, safe: known?.safe ?? 0, artifacts: known?.artifacts ?? new Map() }] as const
  })
  const text = `${kind} from byte ${at} of ${next.wal.length} in the write-ahead log, of which ${before.wal.length} are synced`
  return { database: next.database, wal: Buffer.concat([head, tail]), expectations: new Map(events), text }
}

const sector = 512

/**
 * The write-ahead log is whole and half of it is in the database: each sector that was there is the old or the new one,
 * and behind the old end is anything.
 */
function halfCheckpoint(before: Moment, after: Buffer, random: Random): Left {
  const old = before.database
  const length = old.length + random.below(after.length - old.length + 1)
  const database = random.below(2) === 0 ? random.bytes(length) : Buffer.alloc(length)
  for (let at = 0; at < length; at += sector) {
    const isNew = random.below(2) === 0
    if (isNew) after.copy(database, at, at, Math.min(length, at + sector))
    else if (at < old.length) old.copy(database, at, at, at + sector)
  }
  return { ...before, database, text: `half of a checkpoint, ${length} of ${after.length} bytes` }
}
