import { createHash } from 'node:crypto'
import type { JsonValue, SessionEvent, SessionHeader } from '@dsh/protocol'
import { isCount, isFields, parseJson } from '../../kernel/index.ts'
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
  yield line({
    type: 'dsh/export',
    version: exportVersion,
    redacted: redaction !== undefined,
    header: clean(header),
  })
  const named = new Map<string, string>()
  for (const event of events) {
    const text = JSON.stringify(event)
    for (const [sha256] of text.matchAll(/\b[0-9a-f]{64}\b/g))
      if (!named.has(sha256)) named.set(sha256, mediaTypeIn(text, sha256))
    yield redaction === undefined ? `${text}\n` : line(clean(event))
  }
  for (const [sha256, mediaType] of named) {
    if (redaction !== undefined && !mediaType.startsWith('image/')) continue
    const bytes = await source.artifact(sha256)
    if (bytes === undefined) continue
    yield line({ type: 'dsh/artifact', sha256, mediaType, data: Buffer.from(bytes).toString('base64') })
  }
}

/** Throws an `ExportError` that names the line for what is no export of ours, or was changed. */
export function readExport(text: string): PortableSession & { readonly redacted: boolean } {
  const lines = text.split('\n')
  const first = parseJson(lines[0] ?? '')
  if (!isFields(first) || first['type'] !== 'dsh/export')
    throw new ExportError('NOT_AN_EXPORT', 'line 1 is not that of a dsh export')
  const { version, header, redacted } = first
  if (!isCount(version) || version > exportVersion)
    throw new ExportError(
      'EXPORT_NEWER',
      `the export has version ${JSON.stringify(version)}, this dsh reads ${exportVersion}`,
    )
  if (!isFields(header)) throw new ExportError('NOT_AN_EXPORT', 'line 1 has no session header')
  const events: SessionEvent[] = []
  const artifacts: PortableArtifact[] = []
  for (const [index, raw] of lines.entries()) {
    if (index === 0 || raw === '') continue
    const value = parseJson(raw)
    if (!isFields(value)) throw new ExportError('BAD_EXPORT_LINE', `line ${index + 1} is not JSON`)
    if (value['type'] === 'dsh/artifact') artifacts.push(readArtifact(value, index + 1))
    else events.push(readEvent(value, { seq: events.length, number: index + 1 }))
  }
  return {
    header: header as unknown as SessionHeader,
    events,
    artifacts,
    redacted: redacted === true,
  }
}

function readEvent(
  value: Readonly<Record<string, unknown>>,
  { seq, number }: { readonly seq: number; readonly number: number },
): SessionEvent {
  if (value['seq'] === seq) return value as unknown as SessionEvent
  const found = JSON.stringify(value['seq'])
  throw new ExportError('BAD_EXPORT_LINE', `line ${number} has seq ${found}, expected ${seq}`)
}

function readArtifact(value: Readonly<Record<string, unknown>>, number: number): PortableArtifact {
  const { sha256, mediaType, data } = value
  if (typeof sha256 !== 'string' || typeof mediaType !== 'string' || typeof data !== 'string')
    throw new ExportError('BAD_EXPORT_LINE', `line ${number} is no artifact`)
  const bytes = Buffer.from(data, 'base64')
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw new ExportError('BAD_EXPORT_LINE', `line ${number} holds other bytes than its hash says`)
  return { sha256, mediaType, bytes }
}

/** The media type that stands beside a hash, as in the reference of a picture. */
function mediaTypeIn(text: string, sha256: string): string {
  const at = text.indexOf(sha256)
  const around = text.slice(Math.max(0, at - 300), at + 364)
  return /"mediaType":"(image\/[\w.+-]+)"/.exec(around)?.[1] ?? 'application/octet-stream'
}

function line(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}
