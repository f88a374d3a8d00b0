import { CrashLedger, filesOf, ModelFileSystem, watchMedium, withFile } from '../../src/testing/index.ts'
import type { CrashState, Disk, Expectations, ModelOptions, Remains } from '../../src/testing/index.ts'
import { startProgram } from '../../src/testing/contracts/store-program.ts'
import type { StoreProgram } from '../../src/testing/contracts/store-program.ts'
import type { FileSystem } from '../../src/plugins/store-jsonl/index.ts'
import type { LockHost } from '../../src/plugins/store-jsonl/files/lock.ts'
import { JsonlMedium } from '../../src/plugins/store-jsonl/medium.ts'
import { isProvablyDead } from '../../src/plugins/persistence/index.ts'
import type { Medium, ProcessIdentity } from '../../src/plugins/persistence/index.ts'

export const root = '/srv/sessions'

export interface MachineOptions extends ModelOptions {
  readonly disk?: Disk
  readonly expectations?: Expectations
  /** Changes with each start of the machine. */
  readonly boot?: number
  /** Put between the store and the disk. */
  readonly wrap?: (fs: FileSystem) => FileSystem
}

/** A machine with a model disk, on which programs with the JSONL store run, and die. */
export class Machine {
  fs: ModelFileSystem
  ledger: CrashLedger
  readonly boot: number
  readonly #wrap: (fs: FileSystem) => FileSystem
  readonly #alive = new Set<number>()
  #nextPid: number
  #clock = 1_700_000_000_000

  constructor({ disk, expectations, boot = 1, wrap = fs => fs, ...options }: MachineOptions = {}) {
    this.fs = new ModelFileSystem(disk, options)
    this.ledger = new CrashLedger(() => this.fs.trace.length, expectations)
    this.boot = boot
    this.#wrap = wrap
    // Pids are given again after a start of the machine, as real ones are.
    this.#nextPid = boot * 100
  }

  /** A medium as a new process of this machine opens it. */
  open(): Medium {
    return watchMedium(new JsonlMedium(root, this.newProcess()), this.ledger)
  }

  /** What a new process of this machine sees of it. */
  newProcess(): LockHost {
    const pid = this.#nextPid++
    this.#alive.add(pid)
    const self: ProcessIdentity = { pid, start: '1', boot: String(this.boot), host: 'h', space: 'p' }
    const look = (other: number): 'gone' | { start: string } =>
      this.#alive.has(other) ? { start: '1' } : 'gone'
    const processes = { self: () => self, isDead: (one: ProcessIdentity) => isProvablyDead(one, self, look) }
    return { fs: this.#wrap(this.fs), processes, now: () => ++this.#clock }
  }

  start(): Promise<StoreProgram> {
    return startProgram({ open: () => this.open() })
  }

  /** Every program ends without a word; what its promises still do must be awaited before. */
  kill(): void {
    this.#alive.clear()
  }

  /** This machine with another log of its only session, of which so many events were acknowledged. */
  torn(safe: number, tear: (log: Buffer) => Buffer): Machine {
    const all = [...this.ledger.current].map(([id, expected]) => [id, { ...expected, safe }] as const)
    const disk = withFile(this.fs.disk, this.logPath(), tear)
    return new Machine({ disk, expectations: new Map(all), boot: this.boot + 1 })
  }

  /** Changes the log of the only session behind everybody's back, as what was not acknowledged may be changed. */
  tearLog(safe: number, tear: (log: Buffer) => Buffer): void {
    this.kill()
    const { fs, ledger } = this.torn(safe, tear)
    this.fs = fs
    this.ledger = new CrashLedger(() => this.fs.trace.length, ledger.current)
  }

  logPath(): string {
    const paths = [...filesOf(this.fs.disk).keys()].filter(path => path.endsWith('/log.jsonl.zst'))
    if (paths.length !== 1) throw new Error(`${paths.length} logs are there`)
    return paths[0] ?? ''
  }

  logPathOf(id: string): string {
    return [...filesOf(this.fs.disk).keys()].find(path => path.endsWith(`/${id}/log.jsonl.zst`)) ?? ''
  }

  log(): Buffer {
    return filesOf(this.fs.disk).get(this.logPath()) ?? Buffer.alloc(0)
  }

  /** What happened so far is not looked at. */
  beginTrace(): void {
    const { disk } = this.fs
    const { current } = this.ledger
    this.fs = new ModelFileSystem(disk)
    this.ledger = new CrashLedger(() => this.fs.trace.length, current)
  }

  /** The machine as it is after a crash; `disk` is all that is left. */
  after(state: CrashState, options: Pick<MachineOptions, 'wrap' | 'keepsTrace'> = {}): Machine {
    const boot = state.kind === 'killed' ? this.boot : this.boot + 1
    const expectations = this.ledger.asOf(state.step)
    const machine = new Machine({ disk: state.disk, expectations, boot, ...options })
    machine.#nextPid = this.#nextPid
    return machine
  }

  get remains(): Remains {
    return {
      place: { open: () => this.open() },
      // Every call that changes the disk leaves another one.
      fingerprint: () => `${this.fs.trace.length}`,
    }
  }
}
