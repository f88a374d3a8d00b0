import type { TodoItem } from '@dsh/protocol'
import { isFields } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

declare module '../projection.ts' {
  interface ProjectionStates {
    todo: readonly TodoItem[]
  }
}

/** The list that the model keeps for itself: the last one written. */
export const todoUnit: ProjectionUnit<readonly TodoItem[], 'todo/write'> = {
  key: 'todo',
  stateVersion: 1,
  fold: { name: 'todo', types: ['todo/write'], init: () => [], apply: (_state, event) => event.data.todos },
  isState: (value): value is readonly TodoItem[] => Array.isArray(value) && value.every(isItem),
  view: todos => todos.map(({ content, status }) => ({ content, status })),
}

function isItem(value: unknown): value is TodoItem {
  return isFields(value) && typeof value['content'] === 'string' && statuses.has(value['status'])
}

const statuses: ReadonlySet<unknown> = new Set(['pending', 'in_progress', 'completed'])
