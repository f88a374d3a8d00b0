import type { SessionEvent } from '@dsh/protocol'
import type { FoldDefinition, Session } from '../../core/session/index.ts'
import type { Task } from './service.ts'
import { lostText } from './texts.ts'

/** Tasks that ended and are still listed. */
const remembered = 100
/** Who tells a model what was lost with a process. */
const teller = 'recovery'

export interface TaskHistory {
  /** Events before this seq belong to the session this one was forked from: they count, and their tasks are not here. */
  readonly from: number
  /** The last number of each kind. */
  readonly counts: Readonly<Record<string, number>>
  /** In the order of their start; those that the log does not end count as running. */
  readonly tasks: readonly Task[]
  /** Tasks that were lost and that the model has not been told of. */
  readonly untold: readonly string[]
}

type TaskEvent = 'task/start' | 'task/end' | 'user/message'

/** The tasks of a session, from its log alone. */
export const taskHistory: FoldDefinition<TaskHistory, TaskEvent> = {
  name: 'tasks',
  types: ['task/start', 'task/end', 'user/message'],
  init: header => ({ from: header.seedLength ?? 0, counts: {}, tasks: [], untold: [] }),
  apply(state, event) {
    switch (event.type) {
      case 'task/start':
        return started(state, event)
      case 'task/end':
        return ended(state, event)
      case 'user/message':
        return told(state, event)
    }
  },
}

function started(state: TaskHistory, { seq, time, data }: SessionEvent<'task/start'>): TaskHistory {
  const { id, kind, label, callId } = data
  const number = Number(id.slice(id.lastIndexOf('-') + 1))
  const count = Math.max(state.counts[kind] ?? 0, Number.isSafeInteger(number) ? number : 0)
  const counts = { ...state.counts, [kind]: count }
  if (seq < state.from) return { ...state, counts }
  const task: Task = {
    id,
    kind,
    label,
    status: 'running',
    startedAt: time,
    ...(callId !== undefined && { callId }),
  }
  return { ...state, counts, tasks: [...state.tasks, task] }
}

function ended(state: TaskHistory, { time, data }: SessionEvent<'task/end'>): TaskHistory {
  const { id, ...end } = data
  const index = state.tasks.findIndex(task => task.id === id && task.status === 'running')
  const task = state.tasks[index]
  if (task === undefined) return state
  const tasks = withoutOldest(state.tasks.with(index, { ...task, ...end, endedAt: time }))
  const untold = end.status === 'lost' ? [...state.untold, id] : state.untold
  return { ...state, tasks, untold }
}

function withoutOldest(tasks: readonly Task[]): readonly Task[] {
  if (tasks.filter(task => task.status !== 'running').length <= remembered) return tasks
  return tasks.toSpliced(
    tasks.findIndex(task => task.status !== 'running'),
    1,
  )
}

function told(state: TaskHistory, { data: { source } }: SessionEvent<'user/message'>): TaskHistory {
  if (state.untold.length === 0 || source.kind !== 'plugin' || source.plugin !== teller) return state
  return { ...state, untold: [] }
}

/** What was lost with an earlier process and the model was not told of, one line each. */
export function lostOf(session: Session): readonly string[] {
  const { tasks, untold } = session.fold(taskHistory)
  return tasks.filter(({ id }) => untold.includes(id)).map(lostText)
}

/** Gives the log of a session that is taken up again the ends that an earlier process could not write. */
export function settle(session: Session): void {
  for (const { id, status } of session.fold(taskHistory).tasks)
    if (status === 'running') session.append('task/end', { id, status: 'lost' })
}
