import { CallId, MessageId } from '@dsh/protocol'
import type { ContentBlock, SessionEventMap, ToolErrorInfo, UserMessage } from '@dsh/protocol'

export interface Place {
  readonly turn?: number
  readonly step?: number
}

/** Data of a 'user/message' from a person; its id is its text unless given. */
export function userFact(text: string, id = text): UserMessage {
  return { id: MessageId(id), role: 'user', content: [{ type: 'text', text }], source: { kind: 'user' } }
}

/** Data of an 'assistant/message' with a text, none for '', and calls of a tool by their ids. */
export function answerFact(
  text: string,
  calls: readonly string[] = [],
  { turn = 1, step = 1 }: Place = {},
): SessionEventMap['assistant/message'] {
  const content: ContentBlock[] = text === '' ? [] : [{ type: 'text', text }]
  for (const id of calls) content.push({ type: 'tool-call', id: CallId(id), name: 'tool', arguments: '{}' })
  const source = { kind: 'model', provider: 'mock', model: 'mock' } as const
  const id = MessageId(`answer ${turn}.${step}`)
  return { turn, step, message: { id, role: 'assistant', content, source } }
}

export function callFact(id: string, { turn = 1, step = 1 }: Place = {}): SessionEventMap['tool/call'] {
  return { turn, step, callId: CallId(id), name: 'tool', arguments: '{}' }
}

export function resultFact(
  id: string,
  text: string,
  { turn = 1, step = 1, error }: Place & { readonly error?: ToolErrorInfo } = {},
): SessionEventMap['tool/result'] {
  const callId = CallId(id)
  const block = {
    type: 'tool-result',
    toolCallId: callId,
    content: [{ type: 'text', text }],
    isError: error !== undefined,
  } as const
  return {
    turn,
    step,
    message: {
      id: MessageId(`result ${id}`),
      role: 'user',
      content: [block],
      source: { kind: 'tool', callId },
    },
    ...(error === undefined ? {} : { error }),
  }
}

/** Data of a 'request/header' to the model `mock`. */
export function headerFact(
  reason: SessionEventMap['request/header']['reason'] = 'initial',
): SessionEventMap['request/header'] {
  return { header: { config: { provider: 'mock', model: 'mock' } }, reason }
}

export function textFact(
  text: string,
  { turn = 1, step = 1 }: Place = {},
): SessionEventMap['assistant/chunk'] {
  return { turn, step, chunk: { type: 'text-delta', index: 0, text } }
}
