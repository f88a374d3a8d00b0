import { stripVTControlCharacters } from 'node:util'
import { textOf } from '@dsh/protocol'
import type { SessionEvent, SessionEventType, UserMessage } from '@dsh/protocol'
import type { FoldDefinition } from '../../core/session/index.ts'
import { isFields } from '../../kernel/index.ts'
import { cutText } from '../../core/tools/index.ts'
import type { SessionSummary } from './service.ts'

const titleBytes = 120
const promptBytes = 480
/** Enough to find a line in, however long the text is. */
const lookedAtBytes = 8192

export const emptySummary: SessionSummary = { isTitled: false, turns: 0, archived: false }

/** What a list shows of a log, after one more event. */
export function summaryAfter(summary: SessionSummary, event: SessionEvent): SessionSummary {
  switch (event.type) {
    case 'turn/start':
      // Work on a session brings it back into lists.
      return { ...summary, turns: summary.turns + 1, archived: false }
    case 'session/archived':
      return { ...summary, archived: event.data.archived }
    case 'user/message':
      return event.surfaceOp === 'append' ? withPrompt(summary, event) : summary
    case 'request/header': {
      const { provider, model } = event.data.header.config
      return { ...summary, model: `${provider}/${model}` }
    }
    default:
      return withTitle(summary, event)
  }
}

/** The same of a live session. */
export const summaryFold: FoldDefinition<SessionSummary> = {
  name: 'session summary',
  types: [
    'turn/start',
    'user/message',
    'request/header',
    'session/title',
    'session/archived',
  ] as readonly string[] as readonly SessionEventType[],
  init: () => emptySummary,
  apply: summaryAfter,
}

/** The title that an event gives, where it is a 'session/title', whose plugin need not be there. */
export function titleIn(event: SessionEvent): string | undefined {
  const title = lineOf(titleTextOf(event) ?? '', titleBytes)
  return title === '' ? undefined : title
}

/** The whole of a title that was not made of the first prompt. */
export function givenTitle(event: SessionEvent): string | undefined {
  const text = titleTextOf(event)
  return text === undefined || isFallback(event) ? undefined : text
}

function titleTextOf(event: SessionEvent): string | undefined {
  const { type, data } = event as { readonly type: string; readonly data: unknown }
  if (type !== 'session/title' || !isFields(data)) return undefined
  return typeof data['title'] === 'string' ? data['title'] : undefined
}

/** What stands for a title as long as nobody gave one: the first words of a person. */
export function titleOfPrompt(event: SessionEvent): string | undefined {
  if (event.type !== 'user/message' || event.surfaceOp !== 'append' || !isHuman(event.data)) return undefined
  const title = lineOf(textOf(event.data.content, '\n'), titleBytes)
  return title === '' ? undefined : title
}

function withPrompt(summary: SessionSummary, event: SessionEvent<'user/message'>): SessionSummary {
  if (!isHuman(event.data)) return summary
  const lastPromptAt = Math.max(event.time, summary.lastPromptAt ?? 0)
  if (summary.firstPrompt !== undefined) return { ...summary, lastPromptAt }
  const firstPrompt = lineOf(textOf(event.data.content, '\n'), promptBytes)
  if (firstPrompt === '') return { ...summary, lastPromptAt }
  const title = summary.title ?? lineOf(textOf(event.data.content, '\n'), titleBytes)
  return { ...summary, lastPromptAt, firstPrompt, title }
}

function withTitle(summary: SessionSummary, event: SessionEvent): SessionSummary {
  const title = titleIn(event)
  return title === undefined ? summary : { ...summary, title, isTitled: !isFallback(event) }
}

/** A title that was made of the first prompt, for want of another. */
function isFallback({ data }: SessionEvent): boolean {
  const { source } = data as { readonly source?: unknown }
  return isFields(source) && source['kind'] === 'fallback'
}

function isHuman({ source }: UserMessage): boolean {
  return source.kind === 'user'
}

/** `text` on one line that no terminal acts on, cut where it is long. */
function lineOf(text: string, maxBytes: number): string {
  const start = stripVTControlCharacters(cutText(text, lookedAtBytes))
  return cutText(start.replace(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim(), maxBytes)
}
