import type { SessionEvent, SessionEventType } from '@dsh/protocol'

const shorthand: Partial<Record<SessionEventType, string>> = {
  'agent/inbox/spliced': 'sp',
  'turn/start': 'ts',
  'step/start': 'ss',
  'user/message': 'um',
  'request/header': 'rh',
  'request/context': 'rc',
  'assistant/chunk': 'ch',
  'tool/call': 'tc',
  'tool/result': 'tr',
  'step/end': 'se',
}

/**
 * A log in one line: `sp ts sp ss um rh rc ch am se te:completed`. Chunks in a row are one `ch`; a turn's end names its
 * reason, and an aborted or failed one why; other types stand as they are.
 */
export function outline(events: Iterable<SessionEvent>): string {
  const words: string[] = []
  for (const event of events) {
    const word = wordOf(event)
    if (word !== 'ch' || words.at(-1) !== 'ch') words.push(word)
  }
  return words.join(' ')
}

function wordOf(event: SessionEvent): string {
  if (event.type === 'assistant/message') return event.data.interrupted === true ? 'am(interrupted)' : 'am'
  if (event.type !== 'turn/end') return shorthand[event.type] ?? event.type
  const { reason } = event.data
  if (reason.kind === 'aborted') return `te:aborted{${reason.reason.kind}}`
  return reason.kind === 'error' ? `te:error{${reason.error.code}}` : `te:${reason.kind}`
}
