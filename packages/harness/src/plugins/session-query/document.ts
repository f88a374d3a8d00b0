import type { ContentBlock, SessionEvent, UserMessage } from '@dsh/protocol'
import { cutText } from '../../core/tools/index.ts'
import { givenTitle } from './summary.ts'

/** More of one event is not searched: its two ends are. */
const documentBytes = 256 * 1024
const queuedBytes = 16 * 1024

/** Prompts on their way into the history: a turn that is blocked leaves theirs nowhere else. */
export interface QueuedPrompts {
  readonly 'next-turn': readonly QueuedPrompt[]
  readonly 'next-step': readonly QueuedPrompt[]
  readonly claimed: readonly QueuedPrompt[]
}

interface QueuedPrompt {
  readonly id: string
  readonly text: string
}

export const noPrompts: QueuedPrompts = { 'next-turn': [], 'next-step': [], claimed: [] }

/**
 * What an event says to people: messages, calls and results, blocked prompts, todos, failures, and titles that are more
 * than the first prompt. Not what a model thought, the raw stream, requests, and the snapshots of facts that plugins put
 * in.
 */
export function textOf(event: SessionEvent, queued: QueuedPrompts = noPrompts): string | undefined {
  switch (event.type) {
    case 'user/message':
      return isSnapshot(event.data) ? undefined : textIn(event.data.content)
    case 'assistant/message':
      return textIn(event.data.message.content)
    case 'tool/call':
      return `${event.data.name} ${event.data.arguments}`
    case 'tool/result':
      return joined([
        textIn(event.data.message.content),
        event.data.error?.code,
        event.data.error?.reason ?? undefined,
      ])
    case 'todo/write':
      return joined(event.data.todos.map(({ content }) => content))
    case 'turn/end':
      return textOfEnd(event.data.reason, queued)
    default:
      return givenTitle(event)
  }
}

/** In whatever else a normal form is the text itself, which is dear to find out letter by letter. */
const mayCompose = /[\p{M}\u1100-\u11ff\u2126\u212a\u212b\uf900-\ufaff]/u

/** `text` as it is searched: one line, in one normal form, without what no text holds. */
export function searchable(text: string): string {
  const sound = text.toWellFormed()
  const normal = mayCompose.test(sound) ? sound.normalize('NFC') : sound
  return normal
    .replaceAll('\0', ' ')
    .replace(/\s{2,}|[^\S ]/g, ' ')
    .trim()
}

/** The same for a whole event; undefined where there is nothing to find. */
export function documentOf(event: SessionEvent, queued: QueuedPrompts): string | undefined {
  const text = textOf(event, queued)
  if (text === undefined) return undefined
  const document = searchable(cutText(text, documentBytes, { keep: 'ends' }))
  return document === '' ? undefined : document
}

/** The queues after `event`. */
export function queueAfter(queued: QueuedPrompts, event: SessionEvent): QueuedPrompts {
  switch (event.type) {
    case 'agent/inbox/spliced':
      return spliced(queued, event.data)
    case 'user/message': {
      const { id } = event.data
      if (!queued.claimed.some(prompt => prompt.id === id)) return queued
      return { ...queued, claimed: queued.claimed.filter(prompt => prompt.id !== id) }
    }
    case 'turn/end':
      return queued.claimed.length === 0 ? queued : { ...queued, claimed: [] }
    default:
      return queued
  }
}

function spliced(
  queued: QueuedPrompts,
  { target, start, removedCount = 0, inserted, outcome }: SessionEvent<'agent/inbox/spliced'>['data'],
): QueuedPrompts {
  const list = queued[target]
  const prompts = inserted.map(message => ({
    id: String(message.id),
    text: cutText(textIn(message.content) ?? '', queuedBytes),
  }))
  const removed = list.slice(start, start + removedCount)
  const claimed = outcome === 'canceled' ? queued.claimed : [...queued.claimed, ...removed]
  return { ...queued, claimed, [target]: list.toSpliced(start, removedCount, ...prompts) }
}

function textOfEnd(
  reason: SessionEvent<'turn/end'>['data']['reason'],
  { claimed }: QueuedPrompts,
): string | undefined {
  if (reason.kind === 'error') return joined([reason.error.code, reason.error.message])
  if (reason.kind === 'blocked') return joined(claimed.map(({ text }) => text))
  return undefined
}

function isSnapshot({ source }: UserMessage): boolean {
  return source.kind === 'plugin' && source.form === 'snapshot'
}

function textIn(content: readonly ContentBlock[]): string | undefined {
  return joined(
    content.map(block => {
      if (block.type === 'text') return block.text
      return block.type === 'tool-result' ? textIn(block.content) : undefined
    }),
  )
}

function joined(parts: readonly (string | undefined)[]): string | undefined {
  const texts = parts.filter(part => part !== undefined && part !== '')
  return texts.length === 0 ? undefined : texts.join('\n')
}
