import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { Session } from '../../core/session/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import { lostOf, taskHistory } from './history.ts'

const setup = () => {
  const session = Session.create(SessionId('s'))
  const start = (id: string) => session.append('task/start', { id, kind: 'bash', label: `run ${id}` })
  const end = (id: string, status: 'completed' | 'lost') => session.append('task/end', { id, status })
  return { session, start, end }
}

test('what was lost is told until the model has read of it', () => {
  const { session, start, end } = setup()
  const lost = () => lostOf(session)
  start('bash-1')
  start('bash-2')
  end('bash-1', 'completed')
  assert.deepEqual(lost(), [])
  end('bash-2', 'lost')
  assert.deepEqual(lost(), ['task bash-2 (run bash-2) ended with the program'])
  const source = { kind: 'plugin', plugin: 'recovery', form: 'notice', summary: 'x' } as const
  const content = [{ type: 'text', text: 'lost' }] as const
  session.append('turn/start', { turn: 1 })
  session.append('step/start', { turn: 1, step: 1 })
  session.append('user/message', createUserMessage({ content, source }), { surfaceOp: 'append' })
  assert.deepEqual(lost(), [])
})

test('ended tasks are forgotten in the end, running ones and numbers never', () => {
  const { session, start, end } = setup()
  start('bash-1')
  for (let number = 2; number < 300; number++) {
    start(`bash-${number}`)
    end(`bash-${number}`, 'completed')
  }
  const { tasks, counts } = session.fold(taskHistory)
  assert.equal(tasks.length, 101)
  assert.equal(tasks[0]?.id, 'bash-1')
  assert.equal(counts['bash'], 299)
})

test('a fork counts on and has no tasks of its own yet', () => {
  const state = taskHistory.init({ seedLength: 1 } as never)
  const event = {
    type: 'task/start',
    seq: 0,
    time: 0,
    data: { id: 'bash-4', kind: 'bash', label: 'x' },
  } as const
  const next = taskHistory.apply(state, event as never)
  assert.deepEqual([next.counts, next.tasks], [{ bash: 4 }, []])
})
