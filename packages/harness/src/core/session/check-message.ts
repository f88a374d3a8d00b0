import { isFields, isText } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

/** What is wrong with a message of that origin, undefined where nothing is. Blocks of plugins are their own affair. */
export function problemOfMessage(message: unknown, origin: 'assistant' | 'tool'): string | undefined {
  const problem = problemOfFrame(message, 'message', origin === 'assistant' ? 'assistant' : 'user')
  if (problem !== undefined) return problem
  const { content, source } = message as { readonly content: readonly unknown[]; readonly source: Fields }
  return origin === 'assistant' ? problemOfAnswer(content, source) : problemOfResult(content, source)
}

export function problemOfUserMessage(message: unknown, name = 'message'): string | undefined {
  return problemOfFrame(message, name, 'user')
}

function problemOfFrame(message: unknown, name: string, role: string): string | undefined {
  if (!isFields(message)) return `${name} is no message`
  if (!isText(message['id'])) return `id of ${name} is not a non-empty string`
  if (message['role'] !== role) return `role of ${name} is not "${role}"`
  if (!Array.isArray(message['content'])) return `content of ${name} is no list`
  const { source } = message
  return isFields(source) && isText(source['kind']) ? undefined : `source of ${name} has no kind`
}

function problemOfAnswer(content: readonly unknown[], source: Fields): string | undefined {
  if (source['kind'] !== 'model') return 'source of message is not a model'
  if (!isText(source['provider']) || !isText(source['model']))
    return 'source of message has no provider and model'
  for (const block of content) {
    if (isFields(block) && block['type'] === 'tool-call' && !isToolCall(block)) {
      return 'a tool-call block of message has no id, name and arguments'
    }
  }
  return undefined
}

function isToolCall(block: Fields): boolean {
  return isText(block['id']) && typeof block['name'] === 'string' && typeof block['arguments'] === 'string'
}

function problemOfResult(content: readonly unknown[], source: Fields): string | undefined {
  if (source['kind'] !== 'tool') return 'source of message is not a tool'
  if (!isText(source['callId'])) return 'source of message has no callId'
  const [block] = content
  if (content.length !== 1 || !isFields(block) || block['type'] !== 'tool-result') {
    return 'content of message is not exactly one tool-result block'
  }
  if (!Array.isArray(block['content'])) return 'content of the tool-result block is no list'
  return block['toolCallId'] === source['callId'] ? undefined : 'toolCallId is not the callId of the source'
}
