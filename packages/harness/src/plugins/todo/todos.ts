import type { CallId, SessionEvent, TodoItem } from '@dsh/protocol'
import type { FoldDefinition } from '../../core/session/index.ts'

export interface Todos {
  /** The last list written. */
  readonly items: readonly TodoItem[]
  /** Seq of the surface event that shows it; undefined where none is left before the model. */
  readonly shownBy: number | undefined
  /** Written by a call whose result is still to come. */
  readonly isOpen: boolean
  readonly callId: CallId | undefined
}

const todoTypes = ['todo/write', 'user/message', 'assistant/message', 'tool/result'] as const
type TodoEvent = SessionEvent<(typeof todoTypes)[number]>

export const recallSource = 'todo'

/** The list as it is, and whether the model still has it in view. */
export const todos: FoldDefinition<Todos, (typeof todoTypes)[number]> = {
  name: 'todos',
  types: todoTypes,
  init: () => ({ items: [], shownBy: undefined, isOpen: false, callId: undefined }),
  apply(state: Todos, event: TodoEvent) {
    if (event.type === 'todo/write')
      return { items: event.data.todos, shownBy: undefined, isOpen: true, callId: undefined }
    if (event.surfaceOp !== 'append') return afterReplacement(state, event)
    // The call has the line of results to itself, so the next one is its own.
    if (event.type === 'tool/result' && state.isOpen)
      return { ...state, shownBy: event.seq, isOpen: false, callId: event.data.message.source.callId }
    return isRecall(event) ? { ...state, shownBy: event.seq, callId: undefined } : state
  },
}

/** A result that only became shorter still stands beside the call, which holds the list. */
function afterReplacement(state: Todos, event: TodoEvent): Todos {
  const { shownBy, callId } = state
  if (shownBy === undefined || event.sourceEventSeqs?.includes(shownBy) !== true) return state
  const isSame = event.type === 'tool/result' && event.data.message.source.callId === callId
  return { ...state, shownBy: isSame ? event.seq : undefined }
}

function isRecall(event: TodoEvent): boolean {
  if (event.type !== 'user/message') return false
  const { source } = event.data
  return source.kind === 'plugin' && source.plugin === recallSource
}
