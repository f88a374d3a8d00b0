import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { text } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { tasks } from './index.ts'
import type { TaskOutput, TaskWork } from './index.ts'

/** Text that a task prints when a test says so. */
class Printed implements TaskOutput {
  text = ''
  get totalBytes(): number {
    return this.text.length
  }
  read([from = 0]: readonly number[] = []) {
    return { text: this.text.slice(from), cursor: [this.text.length], omittedBytes: 0 }
  }
}

/** Work that ends when a test says so, or when it is killed. */
function work() {
  const printed = new Printed()
  const { promise, resolve, reject } = Promise.withResolvers<Awaited<TaskWork['done']>>()
  let kills = 0
  const run = (): TaskWork => ({
    done: promise,
    output: printed,
    kill: () => {
      kills++
      resolve({ status: 'failed', detail: 'killed by signal: SIGTERM' })
    },
  })
  return { run, printed, end: resolve, fail: reject, kills: () => kills }
}

async function setup(script: readonly ScriptEntry[] = [], config = {}) {
  const harness = await createHarness(script)
  const { ctx } = harness
  const plugin = ctx.plugin(tasks, config)
  await plugin
  const owner = harness.agent('s')
  let calls = 0
  const call = async (name: string, args: Record<string, JsonValue> = {}, agent: Agent = owner) => {
    const { signal } = new AbortController()
    const input = { callId: CallId(`c${++calls}`), name, arguments: args, signal, agent }
    const { content } = await ctx.tools.execute(input)
    return content.map(block => (block.type === 'text' ? block.text : '')).join('')
  }
  const begin = async (label = 'npm test', agent: Agent = owner) => {
    const job = work()
    const task = await ctx.tasks.start({ kind: 'bash', label, owner: agent, run: job.run })
    return { ...job, task }
  }
  /** Ends the work and waits until everybody knows. */
  const finish = async (job: Awaited<ReturnType<typeof begin>>, detail = 'exit code 0') => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const off = ctx.tasks.onTaskDone((_owner, { id }) => void (id === job.task.id && resolve()))
    job.end({ status: 'completed', detail })
    await promise
    off()
    await Promise.resolve()
  }
  return { ...harness, plugin, owner, call, begin, finish, [Symbol.asyncDispose]: () => ctx.dispose() }
}

const eventsOf = ({ session }: Agent) =>
  session.events.filter(({ type }) => type.startsWith('task/')).map(({ type, data }) => ({ type, ...data }))

test('a task has an id, a log entry for its beginning and one for its end with what it printed', async () => {
  await using world = await setup()
  const job = await world.begin()
  assert.deepEqual([job.task.id, job.task.status], ['bash-1', 'running'])
  job.printed.text = 'ok\n'
  await world.finish(job)
  const [start, end] = eventsOf(world.owner)
  assert.deepEqual(start, { type: 'task/start', id: 'bash-1', kind: 'bash', label: 'npm test' })
  const { artifact } = (end as { output?: { artifact?: string } }).output ?? {}
  assert.deepEqual(end, {
    type: 'task/end',
    id: 'bash-1',
    status: 'completed',
    detail: 'exit code 0',
    output: { bytes: 3, artifact },
  })
  assert.equal(
    Buffer.from((await world.owner.session.artifacts.get(artifact ?? '')) ?? []).toString(),
    'ok\n',
  )
  assert.equal((await world.begin()).task.id, 'bash-2')
})

test('ids go on where an earlier process stopped, and what it left counts as lost', async () => {
  await using first = await setup()
  await first.finish(await first.begin('one'))
  await first.begin('two')
  const events = first.owner.session.events.filter(({ type }) => type.startsWith('task/'))
  await using later = await setup()
  for (const { type, data } of events) later.owner.session.append(type as 'task/start', data as never)
  assert.deepEqual(
    later.ctx.tasks.list(later.owner).map(({ id, status }) => [id, status]),
    [
      ['bash-1', 'completed'],
      ['bash-2', 'lost'],
    ],
  )
  assert.equal((await later.begin('three')).task.id, 'bash-3')
})

test('an owner sees and ends its own tasks alone', async () => {
  await using world = await setup()
  await world.begin('mine')
  const other = world.agent('other')
  assert.deepEqual(world.ctx.tasks.list(other), [])
  assert.equal(
    await world.call('task_kill', { task_id: 'bash-1' }, other),
    'Error: unknown task "bash-1": no task was started',
  )
  const theirs = await world.begin('theirs', other)
  assert.equal(theirs.task.id, 'bash-1', 'ids are counted by session')
  await world.call('task_kill', { task_id: 'bash-1' }, other)
  assert.equal(world.ctx.tasks.get(world.owner, 'bash-1').status, 'running')
})

test('no more tasks run at a time than the limit, and a refused one does not begin', async () => {
  await using world = await setup([], { maxRunning: 2 })
  const first = await world.begin()
  await world.begin()
  let began = false
  const start = () => {
    const { run } = work()
    return world.ctx.tasks.start({
      kind: 'bash',
      label: 'x',
      owner: world.owner,
      run: () => ((began = true), run()),
    })
  }
  await assert.rejects(start(), {
    code: 'TOO_MANY_TASKS',
    message: '2 tasks are running: end one with task_kill first',
  })
  assert.equal(began, false)
  await world.finish(first)
  assert.equal((await start()).id, 'bash-3')
})

test('a task without a name does not begin', async () => {
  await using world = await setup()
  for (const [kind, label] of [
    ['', 'x'],
    ['Bash', 'x'],
    ['a-1', 'x'],
    ['bash', ' '],
  ] as const)
    await assert.rejects(world.ctx.tasks.start({ kind, label, owner: world.owner, run: work().run }), {
      code: 'INVALID_TASK',
    })
})

test('the tools of tasks are offered from the first task on', async () => {
  await using world = await setup([text('a'), text('b')])
  const offered = () => world.adapter.requests.at(-1)?.tools?.map(({ name }) => name) ?? []
  world.owner.followup(say('hi'))
  await world.owner.whenIdle()
  assert.deepEqual(offered(), [])
  await world.begin()
  world.owner.followup(say('go on'))
  await world.owner.whenIdle()
  assert.deepEqual(offered(), ['task_kill', 'task_list', 'task_output'])
})
