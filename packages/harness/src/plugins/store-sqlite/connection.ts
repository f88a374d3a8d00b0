import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite'

export type Row = Readonly<Record<string, SQLOutputValue>>

/** One open database: statements by their text, and transactions. All calls are synchronous. */
export class Connection {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  get(sql: string, ...values: readonly SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values)
  }

  all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    return this.#statement(sql).all(...values)
  }

  /** The rows one by one; what is not asked for is not read. */
  iterate(sql: string, ...values: readonly SQLInputValue[]): IterableIterator<Row> {
    return this.#statement(sql).iterate(...values)
  }

  /** Gives how many rows were changed. */
  run(sql: string, ...values: readonly SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).changes)
  }

  pragma(name: string): SQLOutputValue | undefined {
    const row = this.get(`PRAGMA ${name}`)
    return row && Object.values(row)[0]
  }

  /** Runs `job` alone in one transaction. Where it throws, or the end does, the database is as it was. */
  transact<T>(job: () => T): T {
    this.exec('BEGIN IMMEDIATE')
    try {
      const result = job()
      this.exec('COMMIT')
      return result
    } catch (error) {
      this.#rollBack(error)
      throw error
    }
  }

  close(): void {
    this.#statements.clear()
    this.#database.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const made = this.#database.prepare(sql)
    this.#statements.set(sql, made)
    return made
  }

  /** Some failures end the transaction by themselves. */
  #rollBack(cause: unknown): void {
    if (!this.#database.isTransaction) return
    try {
      this.exec('ROLLBACK')
    } catch (error) {
      throw new AggregateError([cause, error], 'a write failed, and so did taking it back')
    }
  }
}
