import { cutText, joinEnds, utf8Length } from '../../core/tools/index.ts'
import type { KeptText } from '../../core/tools/index.ts'
import { nearest } from '../../kernel/index.ts'
import type { Task } from './service.ts'

const mostListed = 20
const longestName = 80

/** What a model is told that named a task which is none of `tasks`. */
export function unknownTaskText(id: string, tasks: readonly Task[], isAgent: boolean): string {
  const text = `unknown task ${JSON.stringify(cutText(id, longestName))}`
  if (isAgent) return `${text}: it names an agent, and tasks are what runs in the background`
  if (tasks.length === 0) return `${text}: no task was started`
  const names = tasks.map(task => task.id)
  const typo = utf8Length(id) > longestName ? '' : nearest(id, names)
  if (typo !== '') return text + typo
  const shown = names.slice(-mostListed)
  const more = names.length - shown.length
  return `${text}; the tasks are ${more > 0 ? `${more} older and ` : ''}${shown.join(', ')}`
}

/** What a model is told of a task that ended while it was not looking. */
export function endText(task: Task): string {
  const printed = (task.output?.bytes ?? 0) > 0 ? '; task_output shows what it printed' : ''
  return `Task ${nameOf(task)} ${endingOf(task)}${printed}.`
}

/** At most 120 characters, for people. */
export function endSummary(task: Task): string {
  return cutText(`${task.id} ${endingOf(task)}`, 120)
}

/** One line for who comes back after the program ended: what is gone. */
export function lostText(task: Task): string {
  const artifact = task.output?.artifact
  const where = artifact === undefined ? '' : `; what it printed is artifact:${artifact}`
  return `task ${nameOf(task)} ended with the program${where}`
}

/** `completed, exit code 0`. */
function endingOf({ status, detail }: Task): string {
  const word = status === 'lost' ? 'ended with the program' : status
  return detail === undefined || detail === '' ? word : `${word}, ${detail}`
}

function nameOf(task: Task): string {
  return `${task.id} (${shortLabel(task)})`
}

function shortLabel({ label }: Task): string {
  return cutText(label.replace(/\s+/g, ' '), longestName)
}

/** The last line of everything that is said of a task. */
export function statusLine(task: Task): string {
  return `[status: ${endingOf(task)}]`
}

/** One line each: `bash-1 running 12 s: npm run dev`. `now` is epoch ms. */
export function listText(tasks: readonly Task[], now: number): string {
  if (tasks.length === 0) return 'no tasks'
  const older = tasks.length - mostListed
  const lines = tasks.slice(-mostListed).map(task => {
    const seconds = Math.max(0, Math.round(((task.endedAt ?? now) - task.startedAt) / 1000))
    return `${task.id} ${endingOf(task)}, ${seconds} s: ${shortLabel(task)}`
  })
  return [...(older > 0 ? [`${older} older tasks`] : []), ...lines].join('\n')
}

interface ShownOutput extends KeptText {
  /** Holds all of it where not all is shown. */
  readonly artifact: string | undefined
}

/** What a task printed, and its status. */
export function outputText(task: Task, shown: ShownOutput): string {
  const printed = joinEnds(shown, shown.artifact)
  const whole = task.output?.artifact
  const notes = whole === undefined ? [] : [`[all that it printed: artifact:${whole}]`]
  return [printed === '' ? '(no new output)' : printed.replace(/\n$/, ''), ...notes, statusLine(task)].join(
    '\n',
  )
}
