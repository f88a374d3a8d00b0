import { randomUUID } from 'node:crypto'
import { MessageId } from '@dsh/protocol'
import type {
  AssistantMessage,
  CallId,
  ContentBlock,
  Message,
  MessageSource,
  ToolResultBlock,
  ToolResultMessage,
  UserMessage,
} from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'

export interface MessageParts {
  readonly role: Message['role']
  readonly content: readonly ContentBlock[]
  readonly source: MessageSource
}

/** A frozen message with an id of its own; what the caller gave is copied. Throws a TypeError for what JSON cannot keep. */
export function createMessage(parts: MessageParts): Message {
  const { role, content, source } = parts
  return adopt<Message>({ id: newId(), role, content, source })
}

export function createUserMessage(parts: Omit<MessageParts, 'role'>): UserMessage {
  const { content, source } = parts
  return adopt<UserMessage>({ id: newId(), role: 'user', content, source })
}

export function createAssistantMessage(
  parts: Pick<AssistantMessage, 'content' | 'source'>,
): AssistantMessage {
  const { content, source } = parts
  return adopt<AssistantMessage>({ id: newId(), role: 'assistant', content, source })
}

export interface ToolResultParts {
  readonly callId: CallId
  readonly content: readonly ContentBlock[]
  readonly isError?: boolean
}

export function createToolResultMessage(parts: ToolResultParts): ToolResultMessage {
  const { callId, content, isError } = parts
  const block: ToolResultBlock = {
    type: 'tool-result',
    toolCallId: callId,
    content,
    ...(isError === undefined ? {} : { isError }),
  }
  return adopt<ToolResultMessage>({
    id: newId(),
    role: 'user',
    content: [block],
    source: { kind: 'tool', callId },
  })
}

function newId(): MessageId {
  return MessageId(randomUUID())
}
