import { hash } from 'node:crypto'
import type { Connection } from './connection.ts'

// What is there may be damaged, so its bytes are looked at and not its name alone.
const put = `INSERT INTO artifacts (session, sha256, body) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET body = excluded.body WHERE body IS NOT excluded.body`
const get = 'SELECT body FROM artifacts WHERE session = ? AND sha256 = ?'
const names = 'SELECT sha256 FROM artifacts WHERE session = ? ORDER BY sha256'

export function sha256Of(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex')
}

export function putArtifact(
  connection: Connection,
  session: number,
  sha256: string,
  bytes: Uint8Array,
): void {
  connection.run(put, session, sha256, bytes)
}

/** The bytes with this hash, or undefined where they are missing or are others by now. */
export function getArtifact(connection: Connection, session: number, sha256: string): Uint8Array | undefined {
  const body = connection.get(get, session, sha256)?.['body']
  return body instanceof Uint8Array && sha256Of(body) === sha256 ? body : undefined
}

export function artifactNames(connection: Connection, session: number): readonly string[] {
  return connection.all(names, session).map(({ sha256 }) => String(sha256))
}
