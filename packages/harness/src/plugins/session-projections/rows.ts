import type { JsonValue, SessionEvent, SessionHeader } from '@dsh/protocol'
import { isCount, isFields } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import type { AnyUnit } from './projection.ts'

/** The state of one key as it is stored. */
export interface StoredRow {
  readonly ver: number
  readonly val: JsonValue
}

/** What is stored of one session: the states right after one event of its log. */
export interface StoredRows {
  readonly id: string
  readonly createdAt: number
  readonly cwd?: string | undefined
  /** The event that the states include last. -1 where there is none. */
  readonly seq: number
  /** When that event was logged: another log that grew as long has another one there. */
  readonly time: number
  /** That of the log when it was read; absent where it was live. */
  readonly revision?: string | undefined
  readonly rows: Readonly<Record<string, StoredRow>>
}

const format = 1

export function textOfRows(rows: StoredRows): string {
  return JSON.stringify({ format, ...rows })
}

/** The rows of a text that are those of this very session; undefined where they are not, or where it is no such text. */
export function readRows(text: string, header: SessionHeader): StoredRows | undefined {
  const given = parsed(text)
  if (given?.['format'] !== format) return undefined
  const { id, createdAt, cwd, seq, time, revision, rows } = given
  const isSame = id === header.id && createdAt === header.createdAt && cwd === header.cwd
  const isWhole = Number.isSafeInteger(seq) && Number.isSafeInteger(time) && isFields(rows)
  if (!isSame || !isWhole || (revision !== undefined && typeof revision !== 'string')) return undefined
  return Object.values(rows).every(isRow) ? (given as unknown as StoredRows) : undefined
}

function parsed(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRow(row: unknown): boolean {
  return isFields(row) && isCount(row['ver']) && row['val'] !== undefined
}

/** States that are brought up to the end of a log that is read event by event. */
export class ColdStates {
  /** The last event that was given. */
  seq: number
  time = 0
  readonly #units: readonly AnyUnit[]
  readonly #states: unknown[]
  readonly #failures = new Map<AnyUnit, unknown>()

  private constructor(units: readonly AnyUnit[], states: unknown[], seq: number, time: number) {
    this.#units = units
    this.#states = states
    this.seq = seq
    this.time = time
  }

  static fromStart(units: readonly AnyUnit[], header: SessionHeader): ColdStates {
    return new ColdStates(
      units,
      units.map(({ fold }) => fold.init(header)),
      -1,
      0,
    )
  }

  /** Undefined where a unit has no stored state of its version: then all begin at the start. */
  static fromRows(units: readonly AnyUnit[], stored: StoredRows): ColdStates | undefined {
    const states: unknown[] = []
    for (const unit of units) {
      const row = Object.hasOwn(stored.rows, unit.key) ? stored.rows[unit.key] : undefined
      if (row?.ver !== unit.stateVersion || !unit.isState(row.val)) return undefined
      states.push(row.val)
    }
    return new ColdStates(units, states, stored.seq, stored.time)
  }

  /** The next event; one that is `hidden` counts but is shown to no fold. */
  apply(event: SessionEvent, { hidden }: { readonly hidden: boolean }): void {
    this.seq = event.seq
    this.time = event.time
    if (hidden) return
    for (const [index, unit] of this.#units.entries()) {
      if ((unit.fold.types as readonly string[]).includes(event.type)) this.#applyTo(unit, index, event)
    }
  }

  /** Throws what the fold threw. */
  stateOf(unit: AnyUnit): unknown {
    if (this.#failures.has(unit)) throw this.#failures.get(unit)
    return this.#states[this.#units.indexOf(unit)]
  }

  #applyTo(unit: AnyUnit, index: number, event: SessionEvent): void {
    if (this.#failures.has(unit)) return
    try {
      this.#states[index] = unit.fold.apply(this.#states[index], event as never)
    } catch (error) {
      this.#failures.set(unit, error)
    }
  }
}

/** The states that can be stored; a fold that fails has none. */
export function rowsOf(
  units: readonly AnyUnit[],
  stateOf: (unit: AnyUnit) => unknown,
): Record<string, StoredRow> {
  const rows: [string, StoredRow][] = []
  for (const unit of units) {
    try {
      rows.push([unit.key, { ver: unit.stateVersion, val: stateOf(unit) as JsonValue }])
    } catch {
      // Whoever reads the value is told; without a row it is worked out anew then.
    }
  }
  return Object.fromEntries(rows)
}
