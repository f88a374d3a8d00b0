import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Medium } from '../../src/plugins/persistence/index.ts'
import type { FileSystem } from '../../src/plugins/store-jsonl/index.ts'
import { startProgram } from '../../src/testing/contracts/store-program.ts'
import type { StoreProgram } from '../../src/testing/contracts/store-program.ts'
import {
  CrashLedger,
  faultyFileSystem,
  losePower,
  MemoryStore,
  watchMedium,
} from '../../src/testing/index.ts'
import type { FaultyFileSystem, Random } from '../../src/testing/index.ts'
import { Machine } from './machine.ts'
import { openMedium, processesOf } from './media.ts'
import { filesIn, layDown, memoryFolder } from './sqlite-power.ts'

export type CrashKind = 'killed' | 'power lost'

/** One medium of a differential run, and the program that is open on it. */
export abstract class Lane {
  abstract readonly name: string
  #program: StoreProgram | undefined

  get program(): StoreProgram {
    if (this.#program === undefined) throw new Error(`no program is open on ${this.name}`)
    return this.#program
  }

  /** What programs gave to the medium, and what they were told. */
  abstract readonly ledger: CrashLedger
  abstract open(): Medium

  async start(): Promise<void> {
    this.#program = await startProgram({ open: () => this.open() })
  }

  /** Every call from the nth on fails; only where that can be had. */
  cutOff(_nth: number): void {}

  /** What a crash leaves is what the next program finds; a text says what that is. */
  abstract crash(kind: CrashKind, random: Random): Promise<string>

  async end(): Promise<void> {
    await this.#program?.stop()
  }

  /** Ends a program that nobody sees the writes of any more. */
  protected async forget(): Promise<void> {
    await this.#program?.stop().catch(() => undefined)
    this.#program = undefined
  }
}

export class JsonlLane extends Lane {
  readonly name = 'jsonl'
  #faulty: FaultyFileSystem | undefined
  readonly #options = {
    keepsTrace: false,
    wrap: (fs: FileSystem): FileSystem => (this.#faulty = faultyFileSystem(fs)),
  }
  #machine = new Machine(this.#options)

  get ledger(): CrashLedger {
    return this.#machine.ledger
  }

  open(): Medium {
    return this.#machine.open()
  }

  override cutOff(nth: number): void {
    this.#faulty?.inject({ nth, times: Infinity, code: 'EIO' })
  }

  async crash(kind: CrashKind, random: Random): Promise<string> {
    const { disk } = this.#machine.fs
    const left = kind === 'killed' ? { disk, text: 'killed' } : losePower(disk, random)
    this.#machine = this.#machine.after({ kind, step: Infinity, ...left }, this.#options)
    await this.forget()
    return left.text
  }
}

export class SqliteLane extends Lane {
  readonly name = 'sqlite'
  ledger = new CrashLedger(() => 0)
  #home = mkdtempSync(join(memoryFolder(), 'crash-soak-'))
  #boot = 1
  #processes = processesOf(1)

  open(): Medium {
    return watchMedium(openMedium('sqlite', this.#home, { processes: this.#processes() }), this.ledger)
  }

  /** Every transaction that was acknowledged is synced; behind them anything may stand. */
  async crash(kind: CrashKind, random: Random): Promise<string> {
    const last = this.#home
    const { database, wal } = filesIn(last)
    this.#home = mkdtempSync(join(memoryFolder(), 'crash-soak-'))
    const tail = kind === 'killed' ? Buffer.alloc(0) : random.bytes(random.below(9000))
    if (database.length > 0) layDown(this.#home, { database, wal: Buffer.concat([wal, tail]) })
    this.#boot += 1
    this.#processes = processesOf(this.#boot)
    // The old program writes on, and its ledger with it, where nobody looks.
    this.ledger = new CrashLedger(() => 0, this.ledger.current)
    await this.forget()
    rmSync(last, { recursive: true })
    return `${tail.length} bytes of garbage behind the write-ahead log`
  }

  override async end(): Promise<void> {
    await super.end()
    rmSync(this.#home, { recursive: true })
  }
}

export class MemoryLane extends Lane {
  readonly name = 'memory'
  ledger = new CrashLedger(() => 0)
  readonly #store = new MemoryStore()

  open(): Medium {
    return watchMedium(this.#store.open(), this.ledger)
  }

  async crash(): Promise<string> {
    this.ledger = new CrashLedger(() => 0, this.ledger.current)
    this.#store.failure = new Error('the program is gone')
    await this.forget()
    this.#store.failure = undefined
    return 'what was not stored is gone'
  }
}
