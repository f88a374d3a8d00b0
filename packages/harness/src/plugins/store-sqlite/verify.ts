import { setImmediate } from 'node:timers/promises'
import type { SessionId } from '@dsh/protocol'
import { parseHeaderLine } from '../persistence/index.ts'
import type { MediumProblem, MediumReport } from '../persistence/index.ts'
import { artifactNames, getArtifact } from './artifacts.ts'
import type { Database } from './database.ts'
import { scanEvents } from './scan.ts'
import type { EventGap } from './scan.ts'
import type { StoredRow } from './sessions.ts'

/** Reads all that is stored of a log and believes nothing of it. */
export async function verifyLog(
  database: Database,
  id: SessionId,
  row: StoredRow,
  signal?: AbortSignal,
): Promise<MediumReport> {
  const line = parseHeaderLine(row.header)
  const problems: MediumProblem[] = []
  if (typeof line === 'string') problems.push({ code: 'HEADER_DAMAGED', message: line })
  else if (line.header.id !== id)
    problems.push({ code: 'HEADER_FOREIGN', message: `its header is that of session "${line.header.id}"` })
  let events = 0
  for await (const batch of scanEvents(database, row, { signal })) {
    events += batch.events.length
    if (batch.gap !== undefined) problems.push(problemOf(batch.gap))
  }
  problems.push(...(await brokenArtifacts(database, row, signal)))
  return {
    ...(typeof line === 'string' ? {} : { header: line.header }),
    frames: Math.max(row.length, row.end),
    events,
    bytes: row.bytes,
    problems,
  }
}

function problemOf({ code, reason, fromSeq }: EventGap): MediumProblem {
  return { code, message: reason, frame: fromSeq, seq: fromSeq }
}

/** One by one: they may be large. */
async function brokenArtifacts(
  database: Database,
  { key }: StoredRow,
  signal?: AbortSignal,
): Promise<readonly MediumProblem[]> {
  const problems: MediumProblem[] = []
  const names = await database.read(connection => artifactNames(connection, key))
  for (const sha256 of names ?? []) {
    signal?.throwIfAborted()
    const bytes = await database.read(connection => getArtifact(connection, key, sha256))
    if (bytes === undefined)
      problems.push({ code: 'ARTIFACT_DAMAGED', message: `artifact ${sha256} holds other bytes` })
    await setImmediate()
  }
  return problems
}
