import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SessionHeader, SessionId } from '@dsh/protocol'
import { isFields, parseJson } from '../../kernel/index.ts'
import { IndexDamage } from './database.ts'
import type { DigestState, EventDocument } from './digest.ts'

/** How far a log is in the index. */
export interface IndexedLog {
  readonly key: number
  readonly id: SessionId
  readonly header: string
  /** '' where it was not read to its end. */
  readonly revision: string
  readonly nextSeq: number
  readonly tail: string
  readonly digest: DigestState
  readonly gap: string | undefined
  readonly hasDocuments: boolean
  readonly generation: number
}

export type LogPosition = Pick<IndexedLog, 'revision' | 'nextSeq' | 'tail' | 'digest' | 'gap'>

interface Statements {
  readonly generation: StatementSync
  readonly raise: StatementSync
  readonly all: StatementSync
  readonly one: StatementSync
  readonly insert: StatementSync
  readonly save: StatementSync
  readonly remove: StatementSync
  readonly forget: StatementSync
}

/** The rows of the index, one for each log; what is written belongs to the caller's transaction. */
export class IndexRows {
  readonly documents: DocumentTable
  readonly #statements: Statements

  constructor(db: DatabaseSync) {
    this.documents = new DocumentTable(db, 'documents', 'words')
    this.#statements = {
      generation: db.prepare('SELECT generation FROM state'),
      raise: db.prepare('UPDATE state SET generation = generation + 1'),
      all: db.prepare('SELECT * FROM sessions'),
      one: db.prepare('SELECT * FROM sessions WHERE id = ?'),
      insert: db.prepare(
        `INSERT INTO sessions (id, header, revision, next_seq, tail, digest, gap, has_documents, generation)
         VALUES (?, ?, '', 0, '', ?, NULL, 1, 0)`,
      ),
      save: db.prepare(
        `UPDATE sessions SET revision = ?, next_seq = ?, tail = ?, digest = ?, gap = ?,
         generation = (SELECT generation FROM state) WHERE key = ?`,
      ),
      remove: db.prepare('DELETE FROM sessions WHERE key = ?'),
      forget: db.prepare('UPDATE sessions SET has_documents = 0 WHERE key = ?'),
    }
  }

  /** Rises with every change. */
  get generation(): number {
    return Number(this.#statements.generation.get()?.['generation'])
  }

  all(): ReadonlyMap<SessionId, IndexedLog> {
    const logs = this.#statements.all.all().map(toLog)
    return new Map(logs.map(log => [log.id, log]))
  }

  get(id: SessionId): IndexedLog | undefined {
    const row = this.#statements.one.get(id)
    return row === undefined ? undefined : toLog(row)
  }

  /** A log of which nothing was read yet, in place of whatever was known of it. */
  begin(id: SessionId, header: SessionHeader, digest: DigestState): IndexedLog {
    const known = this.get(id)
    if (known !== undefined) this.remove(known.key)
    this.#statements.insert.run(id, JSON.stringify(header), JSON.stringify(digest))
    const begun = this.get(id)
    if (begun === undefined) throw new TypeError(`session "${id}" has no row`)
    return begun
  }

  save(key: number, { revision, nextSeq, tail, digest, gap }: LogPosition): void {
    this.#statements.raise.run()
    this.#statements.save.run(revision, nextSeq, tail, JSON.stringify(digest), gap ?? null, key)
  }

  remove(key: number): void {
    this.documents.removeOf(key)
    this.#statements.raise.run()
    this.#statements.remove.run(key)
  }

  /** Keeps the row and nothing to be found. */
  removeDocuments(key: number): void {
    this.documents.removeOf(key)
    this.#statements.raise.run()
    this.#statements.forget.run(key)
  }
}

/** Documents and what finds them. */
export class DocumentTable {
  readonly #insert: StatementSync
  readonly #find: StatementSync
  readonly #shadow: StatementSync
  readonly #unfind: StatementSync
  readonly #remove: StatementSync

  constructor(db: DatabaseSync, documents: string, words: string) {
    this.#insert = db.prepare(
      `INSERT INTO ${documents} (session, seq, type, time, surface, length, text) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    this.#find = db.prepare(`INSERT INTO ${words} (rowid, text) VALUES (?, ?)`)
    this.#shadow = db.prepare(
      `UPDATE ${documents} SET surface = 'shadowed' WHERE session = ? AND seq IN (SELECT value FROM json_each(?))`,
    )
    this.#unfind = db.prepare(
      `DELETE FROM ${words} WHERE rowid IN (SELECT id FROM ${documents} WHERE session = ?)`,
    )
    this.#remove = db.prepare(`DELETE FROM ${documents} WHERE session = ?`)
  }

  add(session: number, { seq, type, time, surface, text }: EventDocument): void {
    const length = text.length - (text.match(/[\ud800-\udbff]/g)?.length ?? 0)
    const { lastInsertRowid } = this.#insert.run(session, seq, type, time, surface, length, text)
    this.#find.run(lastInsertRowid, text)
  }

  shadow(session: number, seqs: readonly number[]): void {
    if (seqs.length > 0) this.#shadow.run(session, JSON.stringify(seqs))
  }

  removeOf(session: number): void {
    this.#unfind.run(session)
    this.#remove.run(session)
  }
}

function toLog(row: Record<string, unknown>): IndexedLog {
  return {
    key: Number(row['key']),
    id: row['id'] as SessionId,
    header: String(row['header']),
    revision: String(row['revision']),
    nextSeq: Number(row['next_seq']),
    tail: String(row['tail']),
    digest: digestOf(row['digest']),
    gap: typeof row['gap'] === 'string' ? row['gap'] : undefined,
    hasDocuments: row['has_documents'] === 1,
    generation: Number(row['generation']),
  }
}

function digestOf(value: unknown): DigestState {
  const read = parseJson(String(value))
  if (!isFields(read) || !isFields(read['summary'])) throw new IndexDamage('a row of the index has no digest')
  return read as unknown as DigestState
}
