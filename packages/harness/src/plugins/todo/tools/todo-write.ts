import type { TodoItem } from '@dsh/protocol'
import { defineTool, ToolArgsError } from '../../../core/tools/index.ts'
import type { ToolDefinition } from '../../../core/tools/index.ts'

export interface TodoConfig {
  readonly allowParallelInProgress: boolean
}

const statuses = ['pending', 'in_progress', 'completed'] as const

const description =
  'Keep a list of tasks for work of three or more steps. Each call replaces the whole list; update it as you go.'
const oneAtATime = ' Only one may be in progress.'

export function todoWrite({ allowParallelInProgress }: TodoConfig): ToolDefinition {
  return defineTool({
    name: 'todo_write',
    description: allowParallelInProgress ? description : description + oneAtATime,
    parameters: {
      todos: {
        type: 'array',
        required: true,
        items: {
          type: 'object',
          additionalProperties: false,
          properties: {
            content: { type: 'string', required: true },
            status: { type: 'string', enum: statuses, required: true },
          },
        },
      },
    },
    execute({ todos: given }, { agent }) {
      const todos = given.map(({ content, status }) => ({ content: content.trim(), status }))
      const problems = problemsOf(todos, allowParallelInProgress)
      if (problems.length > 0) throw new ToolArgsError(problems)
      if (agent === undefined)
        throw new TypeError('a todo list belongs to an agent, and no agent made this call')
      agent.session.append('todo/write', { todos })
      const count = (wanted: TodoItem['status']): number =>
        todos.filter(({ status }) => status === wanted).length
      return `${count('pending')} pending, ${count('in_progress')} in progress, ${count('completed')} completed`
    },
  })
}

function problemsOf(todos: readonly TodoItem[], allowParallelInProgress: boolean): string[] {
  const seen = new Map<string, number>()
  const problems: string[] = []
  for (const [index, { content }] of todos.entries()) {
    const first = seen.get(content)
    if (content === '') problems.push(`todos[${index}].content is blank`)
    else if (first === undefined) seen.set(content, index)
    else problems.push(`todos[${index}].content is the same as that of todos[${first}]`)
  }
  const running = todos.flatMap(({ status }, index) => (status === 'in_progress' ? [index] : []))
  if (!allowParallelInProgress && running.length > 1)
    problems.push(`${running.length} todos are in_progress (${running.join(', ')}), at most one may be`)
  return problems
}
