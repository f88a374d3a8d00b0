import type { DatabaseSync } from 'node:sqlite'

/** Tells our file from any other database: "dshi". */
export const applicationId = 0x64736869
/** Raised with every change of what is kept or how it is read; an index of another version is made anew. */
export const schemaVersion = 2

const documents = `
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  time INTEGER NOT NULL,
  surface TEXT NOT NULL,
  length INTEGER NOT NULL,
  text TEXT NOT NULL`

/** Which documents hold which runs of three characters; where in them is looked up in the text. */
const words = `fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram')`

const tables = `
  CREATE TABLE state (generation INTEGER NOT NULL);
  INSERT INTO state VALUES (0);
  CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    header TEXT NOT NULL,
    -- Up to which the log was read; '' = not to its end.
    revision TEXT NOT NULL,
    next_seq INTEGER NOT NULL,
    -- Of the last event that was read: a log that goes on behind it is not read again.
    tail TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- Why the log ends before its end.
    gap TEXT,
    -- 0 = its documents were removed to save room.
    has_documents INTEGER NOT NULL,
    generation INTEGER NOT NULL
  );
  CREATE TABLE documents (${documents});
  CREATE INDEX documents_of ON documents (session, seq);
  CREATE VIRTUAL TABLE words USING ${words};`

/** What live sessions hold is told to nobody else. */
export const temporarySchema = `
  CREATE TABLE temp.live_documents (${documents});
  CREATE INDEX temp.live_documents_of ON live_documents (session, seq);
  CREATE VIRTUAL TABLE temp.live_words USING ${words};`

export function createSchema(db: DatabaseSync): void {
  db.exec(tables)
  db.exec(`PRAGMA application_id = ${applicationId}`)
  db.exec(`PRAGMA user_version = ${schemaVersion}`)
}

export function hasTables(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined
}

export function dropSchema(db: DatabaseSync): void {
  // Virtual tables first: theirs go with them.
  const list = db.prepare(
    `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
     ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC`,
  )
  for (const { name } of list.all()) db.exec(`DROP TABLE IF EXISTS "${String(name).replaceAll('"', '""')}"`)
}
