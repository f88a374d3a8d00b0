import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { oneLine } from '../text.ts'
import { Transcript } from '../transcript.ts'
import type { Entry } from '../transcript.ts'

/** A session as a document for people. */
export interface SessionDocument {
  /** What was asked first, on one line. */
  readonly title: string
  /** Id, folder, time and models. */
  readonly facts: readonly string[]
  readonly entries: readonly Entry[]
}

export function documentOf({
  header,
  events,
}: {
  header: SessionHeader
  events: readonly SessionEvent[]
}): SessionDocument {
  const transcript = new Transcript(header.cwd)
  const entries = events.flatMap(event => transcript.next(event) ?? [])
  const first = entries.find(entry => entry.kind === 'prompt')
  const models = new Set(
    events.flatMap(({ type, data }) =>
      type === 'request/header' ? [`${data.header.config.provider}/${data.header.config.model}`] : [],
    ),
  )
  return {
    title: first?.kind === 'prompt' ? oneLine(first.text) : `Session ${header.id}`,
    facts: [
      `session ${header.id}`,
      ...(header.cwd === undefined ? [] : [header.cwd]),
      new Date(header.createdAt)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, ' UTC'),
      ...models,
    ],
    entries,
  }
}
