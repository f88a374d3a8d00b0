import type { TodoItem, UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import type { Session } from '../../core/session/index.ts'
import { recallSource, todos } from './todos.ts'

const intro = 'Your todo list, as you last wrote it:'

const marks: Readonly<Record<TodoItem['status'], string>> = {
  pending: '[ ]',
  in_progress: '[>]',
  completed: '[x]',
}

/** The list as a message, where the model no longer sees it and something of it is left to do. */
export function listForgotten(session: Session): UserMessage | undefined {
  const { items, shownBy, isOpen } = session.fold(todos)
  if (shownBy !== undefined || isOpen || items.every(({ status }) => status === 'completed')) return undefined
  const lines = items.map(({ content, status }) => `${marks[status]} ${content}`)
  return createUserMessage({
    content: [{ type: 'text', text: [intro, ...lines].join('\n') }],
    source: { kind: 'plugin', plugin: recallSource, form: 'recall' },
  })
}
