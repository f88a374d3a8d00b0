import type { UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import { contextText, goOnText } from './text.ts'

/** What hooks want the model to know, a message each. */
export function contextMessages(
  contexts: readonly { readonly id: string; readonly text: string }[],
): readonly UserMessage[] {
  return contexts.map(({ id, text }) => message(contextText(id, text), 'Context from a hook'))
}

/** Why the turn is not over. */
export function goOnMessage(reason: string): UserMessage {
  return message(goOnText(reason), 'A hook keeps the turn going')
}

function message(text: string, summary: string): UserMessage {
  return createUserMessage({
    content: [{ type: 'text', text }],
    source: { kind: 'plugin', plugin: 'hooks', form: 'notice', summary },
  })
}
