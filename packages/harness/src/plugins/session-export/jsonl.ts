import { createHash } from 'node:crypto'
import type { JsonValue, SessionEvent, SessionHeader } from '@dsh/protocol'
import {
  freezeJson,
  isCount,
  isFields,
  isText,
  messageOf,
  parseJson,
  toJsonText,
} from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import { isChunkRow } from '../../core/session/index.ts'
import { ExportError } from './errors.ts'
import type { Redaction } from './redact.ts'

const exportVersion = 1

/** A session as it goes into an export, and as it comes out of one. */
export interface PortableSession {
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
  readonly artifacts: readonly PortableArtifact[]
}

export interface PortableArtifact {
  /** Hex, of the bytes. */
  readonly sha256: string
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** What is exported, and where the bytes come from that its events name. */
export interface ExportSource extends Pick<PortableSession, 'header' | 'events'> {
  artifact(sha256: string): Promise<Uint8Array | undefined>
}

/**
 * The lines of an export: what it is, the events, the bytes they name. With a redaction only pictures come along:
 * any other bytes may hold what is taken out of the events.
 */
export async function* exportLines(source: ExportSource, redaction?: Redaction): AsyncGenerator<string> {
  const clean = <T>(value: T): T =>
    redaction === undefined ? value : (redaction.value(value as JsonValue) as T)
  const { header, events } = source
  let artifacts = 0
  yield line({
    type: 'dsh/export',
    version: exportVersion,
    redacted: redaction !== undefined,
    header: clean(header),
  })
  const named = new Map<string, string>()
  for (const event of events) {
    const text = toJsonText(event as unknown as JsonValue)
    for (const [sha256] of text.matchAll(/\b[0-9a-f]{64}\b/g))
      if (!named.has(sha256)) named.set(sha256, mediaTypeIn(text, sha256))
    yield redaction === undefined ? `${text}\n` : line(clean(event))
  }
  for (const [sha256, mediaType] of named) {
    if (redaction !== undefined && !mediaType.startsWith('image/')) continue
    const bytes = await source.artifact(sha256)
    if (bytes === undefined) continue
    artifacts += 1
    yield line({ type: 'dsh/artifact', sha256, mediaType, data: Buffer.from(bytes).toString('base64') })
  }
  yield line({ type: 'dsh/end', events: events.length, artifacts })
}

/** Rejects with an `ExportError` that names the line for what is no export of ours, was changed, or was cut off. */
export async function readExport(
  lines: AsyncIterable<string>,
): Promise<PortableSession & { readonly redacted: boolean }> {
  const events: SessionEvent[] = []
  const artifacts: PortableArtifact[] = []
  let start: ExportStart | undefined
  let isWhole = false
  let number = 0
  for await (const raw of lines) {
    number += 1
    if (start === undefined) {
      start = readStart(raw)
      continue
    }
    if (raw.trim() === '') continue
    if (isWhole) throw badLine(number, 'stands behind the last line of an export')
    const value = parseJson(raw)
    if (!isFields(value)) throw badLine(number, 'is not JSON')
    if (value['type'] === 'dsh/artifact') artifacts.push(readArtifact(value, number))
    else if (value['type'] === 'dsh/end') isWhole = isEndOf(value, { events, artifacts, number })
    else events.push(readEvent(value, { seq: events.length, number }))
  }
  if (start === undefined) throw notOurs('is not that of a dsh export')
  if (!isWhole) throw badLine(number, 'is not the last one of an export: something cut it off')
  if (events.length === 0) throw badLine(number, 'ends an export without events')
  return { ...start, events, artifacts }
}

interface ExportStart {
  readonly header: SessionHeader
  readonly redacted: boolean
}

function readStart(raw: string): ExportStart {
  const first = parseJson(raw)
  if (!isFields(first) || first['type'] !== 'dsh/export') throw notOurs('is not that of a dsh export')
  const { version, header, redacted } = first
  if (!isCount(version) || version > exportVersion)
    throw new ExportError(
      'EXPORT_NEWER',
      `the export has version ${brief(version)}, this dsh reads ${exportVersion}`,
    )
  if (!isFields(header)) throw notOurs('has no session header')
  if (!isText(header['id'])) throw notOurs('has no session id')
  const problem = problemOf(header, 'header')
  if (problem !== undefined) throw notOurs(`cannot be kept: ${problem}`)
  return { header: header as unknown as SessionHeader, redacted: redacted === true }
}

/** Throws where lines are missing. */
function isEndOf(
  { events, artifacts }: Fields,
  read: {
    readonly events: readonly unknown[]
    readonly artifacts: readonly unknown[]
    readonly number: number
  },
): true {
  if (events === read.events.length && artifacts === read.artifacts.length) return true
  const found = `${read.events.length} events and ${read.artifacts.length} artifacts`
  throw badLine(
    read.number,
    `tells of ${brief(events)} events and ${brief(artifacts)} artifacts, found ${found}`,
  )
}

function readEvent(
  value: Fields,
  { seq, number }: { readonly seq: number; readonly number: number },
): SessionEvent {
  if (value['seq'] !== seq) throw badLine(number, `has seq ${brief(value['seq'])}, expected ${seq}`)
  // What the stores write in their own words must come from them alone, or a log is damaged from its first day.
  if ('spill' in value || isChunkRow(value)) throw badLine(number, 'is no event, but a part of a stored log')
  const problem = problemOf(value, 'event')
  if (problem !== undefined) throw badLine(number, `cannot be kept: ${problem}`)
  return value as unknown as SessionEvent
}

/** What JSON would lose of a value that was read from JSON, such as a number that is too large. */
function problemOf(value: Fields, name: string): string | undefined {
  try {
    freezeJson(value, name)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function readArtifact(value: Fields, number: number): PortableArtifact {
  const { sha256, mediaType, data } = value
  if (typeof sha256 !== 'string' || typeof mediaType !== 'string' || typeof data !== 'string')
    throw badLine(number, 'is no artifact')
  const bytes = Buffer.from(data, 'base64')
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw badLine(number, 'holds other bytes than its hash says')
  return { sha256, mediaType, bytes }
}

/** The media type that stands beside a hash, as in the reference of a picture. */
function mediaTypeIn(text: string, sha256: string): string {
  const at = text.indexOf(sha256)
  const around = text.slice(Math.max(0, at - 300), at + 364)
  return /"mediaType":"(image\/[\w.+-]+)"/.exec(around)?.[1] ?? 'application/octet-stream'
}

function line(value: object): string {
  return `${toJsonText(value as JsonValue)}\n`
}

/** A value of a file, short enough for a message. */
function brief(value: unknown): string {
  const text = value === undefined ? 'none' : toJsonText(value as JsonValue)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

function notOurs(problem: string): ExportError {
  return new ExportError('NOT_AN_EXPORT', `line 1 ${problem}`)
}

function badLine(number: number, problem: string): ExportError {
  return new ExportError('BAD_EXPORT_LINE', `line ${number} ${problem}`)
}
