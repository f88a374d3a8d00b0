import type { TitleSource } from '@dsh/harness/plugins/title'
import type { JsonValue, SessionEvent, SessionHeader } from '@dsh/protocol'
import { oneLine } from '../text.ts'
import { Transcript } from '../transcript.ts'
import type { Entry } from '../transcript.ts'

/** A session as a document for people. */
export interface SessionDocument {
  /** What it was called, else what was asked first; on one line. */
  readonly title: string
  /** Id, folder, time and models. */
  readonly facts: readonly string[]
  /** Made one by one as they are read, once. */
  readonly entries: Iterable<Entry>
}

export interface DocumentSource {
  readonly header: SessionHeader
  readonly events: readonly SessionEvent[]
  /** Takes out of what is shown what must not leave. */
  readonly entryFilter?: Filter
  /** The same for what stands above the entries, and is in them as well. */
  readonly headFilter?: Filter
}

interface Filter {
  value<T extends JsonValue>(value: T): T
}

const showAll: Filter = { value: value => value }

export function documentOf(source: DocumentSource): SessionDocument {
  const { events, headFilter = showAll } = source
  const header = filtered(source.header, headFilter)
  const models = new Set(
    events.flatMap(({ type, data }) =>
      type === 'request/header' ? [`${data.header.config.provider}/${data.header.config.model}`] : [],
    ),
  )
  const title = titleIn(events) ?? firstPrompt(events)
  return {
    title: title === undefined ? `Session ${header.id}` : oneLine(headFilter.value(title)),
    facts: [
      `session ${header.id}`,
      ...(header.cwd === undefined ? [] : [header.cwd]),
      new Date(header.createdAt)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, ' UTC'),
      ...headFilter.value([...models]),
    ],
    entries: entriesOf(source),
  }
}

function* entriesOf({ header, events, entryFilter = showAll }: DocumentSource): Generator<Entry> {
  const transcript = new Transcript(filtered(header, entryFilter).cwd)
  for (const event of events) {
    const entry = transcript.next(filtered(event, entryFilter))
    if (entry !== undefined) yield entry
  }
}

function titleIn(events: readonly SessionEvent[]): string | undefined {
  const given = events.findLast(
    (event): event is SessionEvent<'session/title'> =>
      event.type === 'session/title' && isGiven(event.data) && event.data.title.trim() !== '',
  )
  return given?.data.title
}

/** One that was made of the first prompt may have cut what is to be taken out of it. */
function isGiven(data: { readonly title?: unknown; readonly source?: Partial<TitleSource> }): boolean {
  return typeof data.title === 'string' && data.source?.kind !== 'fallback'
}

function firstPrompt(events: readonly SessionEvent[]): string | undefined {
  const transcript = new Transcript(undefined)
  for (const event of events) {
    const entry = event.type === 'user/message' ? transcript.next(event) : undefined
    if (entry?.kind === 'prompt') return entry.text
  }
  return undefined
}

/** Events and headers are JSON, whatever their types say. */
function filtered<T>(value: T, filter: Filter): T {
  return filter.value(value as JsonValue) as T
}
