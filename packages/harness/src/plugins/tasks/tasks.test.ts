import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
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

test('what a model is told of the tools', async () => {
  await using world = await setup()
  const id = { type: 'string' }
  const told = {
    task_list: ['List background tasks with their status.', { type: 'object', properties: {} }],
    task_output: [
      'Get what a background task printed since the last look, and its status.',
      {
        type: 'object',
        properties: {
          task_id: id,
          wait: { type: 'boolean', description: 'until it ends' },
          timeout_ms: { type: 'number', description: 'of the wait; default 30000, at most 600000' },
        },
        required: ['task_id'],
      },
    ],
    task_kill: [
      'End a background task.',
      { type: 'object', properties: { task_id: id, reason: { type: 'string' } }, required: ['task_id'] },
    ],
  }
  for (const [name, expected] of Object.entries(told)) {
    const tool = world.ctx.tools.get(name)
    assert.deepEqual([tool?.description, tool?.parameters, tool?.deferred], [...expected, true])
  }
})

const textsOf = ({ session }: Agent): string[] =>
  session.events.flatMap(({ type, data }) => {
    if (type !== 'user/message') return []
    const [block] = (data as { content: readonly { text?: string }[] }).content
    return [block?.text ?? '']
  })

test('an idle owner is woken by the end of a task, and told what to do about it', async () => {
  await using world = await setup([text('thanks')])
  const job = await world.begin()
  job.printed.text = 'ok'
  await world.finish(job)
  await world.owner.whenIdle()
  assert.deepEqual(textsOf(world.owner), [
    'Task bash-1 (npm test) completed, exit code 0; task_output shows what it printed.',
  ])
  assert.equal(world.adapter.requests.length, 1)
})

test('ends of tasks wake no more often than allowed until a person says something', async () => {
  await using world = await setup(
    [1, 2, 3, 4, 5, 6].map(String).map(word => text(word)),
    { maxWakes: 2 },
  )
  const endOne = async (): Promise<void> => {
    await world.finish(await world.begin())
    await world.owner.whenIdle()
  }
  for (let index = 0; index < 4; index++) await endOne()
  assert.equal(world.adapter.requests.length, 2)
  assert.equal(world.owner.inbox.nextStep.length, 2, 'the others wait for the next turn')
  world.owner.followup(say('and?'))
  await world.owner.whenIdle()
  assert.equal(textsOf(world.owner).length, 5)
  await endOne()
  assert.equal(world.adapter.requests.length, 4, 'a person has spoken')
})

test('a busy owner is told with its next step', async () => {
  const held = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const slow = async () => {
    asked.resolve()
    await held.promise
    return text('one')
  }
  await using world = await setup([slow, text('two')], { maxWakes: 0 })
  const job = await world.begin()
  world.owner.followup(say('go'))
  await asked.promise
  await world.finish(job)
  held.resolve()
  await world.owner.whenIdle()
  assert.deepEqual(textsOf(world.owner), ['go', 'Task bash-1 (npm test) completed, exit code 0.'])
  assert.equal(world.adapter.requests.length, 2)
})

test('a model that looked at the end itself is not told of it again', async () => {
  await using world = await setup([text('x')], { maxWakes: 0 })
  const job = await world.begin()
  const waiting = world.call('task_output', { task_id: 'bash-1', wait: true })
  await world.finish(job)
  assert.equal(await waiting, '(no new output)\n[status: completed, exit code 0]')
  await world.begin('sleep')
  assert.equal(
    await world.call('task_kill', { task_id: 'bash-2', reason: 'done with it' }),
    '[status: killed, done with it]',
  )
  assert.deepEqual(world.owner.inbox.nextStep, [])
  const late = await world.begin('late')
  await world.finish(late)
  assert.equal(world.owner.inbox.nextStep.length, 1)
  await world.call('task_output', { task_id: 'bash-3' })
  assert.deepEqual(world.owner.inbox.nextStep, [], 'what waits unread is taken back')
})

test('a surface that reads or ends a task takes nothing from the model', async () => {
  await using world = await setup([], { maxWakes: 0 })
  const { ctx, owner, call } = world
  const job = await world.begin()
  job.printed.text = 'one\n'
  const first = ctx.tasks.read(owner, 'bash-1')
  assert.equal(first.text, 'one\n')
  assert.equal(ctx.tasks.read(owner, 'bash-1', first.cursor).text, '')
  assert.equal(await call('task_output', { task_id: 'bash-1' }), 'one\n[status: running]')
  job.printed.text += 'two\n'
  assert.equal(ctx.tasks.read(owner, 'bash-1').text, 'one\ntwo\n')
  assert.equal(ctx.tasks.read(owner, 'bash-1', first.cursor).text, 'two\n')
  assert.equal(await call('task_output', { task_id: 'bash-1' }), 'two\n[status: running]')
  await ctx.tasks.kill(owner, 'bash-1', 'ended by the user')
  const [notice] = owner.inbox.nextStep
  assert.deepEqual(notice?.content, [
    {
      type: 'text',
      text: 'Task bash-1 (npm test) killed, ended by the user; task_output shows what it printed.',
    },
  ])
})

test('a wrong id names what is near, what is there, or what it is', async () => {
  await using world = await setup()
  const say = (task_id: string) => world.call('task_output', { task_id })
  assert.equal(await say('bash-1'), 'Error: unknown task "bash-1": no task was started')
  for (const label of ['one', 'two']) await world.begin(label)
  assert.equal(await say('bahs-1'), 'Error: unknown task "bahs-1"; did you mean "bash-1"?')
  assert.equal(
    await say('something else'),
    'Error: unknown task "something else"; the tasks are bash-1, bash-2',
  )
  world.agent('child-7')
  assert.equal(
    await say('child-7'),
    'Error: unknown task "child-7": it names an agent, and tasks are what runs in the background',
  )
  assert.equal(await world.call('task_list'), 'bash-1 running, 0 s: one\nbash-2 running, 0 s: two')
})

test('a wait ends with its time or its signal, and the task goes on', async () => {
  await using world = await setup()
  const { ctx, owner } = world
  await world.begin()
  assert.equal((await ctx.tasks.wait(owner, 'bash-1', { ms: 1 })).status, 'running')
  const controller = new AbortController()
  const waiting = ctx.tasks.wait(owner, 'bash-1', { ms: 60_000, signal: controller.signal })
  controller.abort(new Error('enough'))
  await assert.rejects(waiting, { message: 'enough' })
  assert.equal(ctx.tasks.get(owner, 'bash-1').status, 'running')
  assert.equal(
    await world.call('task_output', { task_id: 'bash-1', wait: true, timeout_ms: 0 }),
    'Error: invalid arguments: timeout_ms: must be more than 0, not 0',
  )
})

test('work that fails is a failed task', async () => {
  await using world = await setup([], { maxWakes: 0 })
  const job = await world.begin()
  job.fail(new Error('boom'))
  const task = await world.ctx.tasks.wait(world.owner, 'bash-1', { ms: 60_000 })
  assert.deepEqual([task.status, task.detail], ['failed', 'boom'])
  await assert.rejects(
    world.ctx.tasks.start({
      kind: 'bash',
      label: 'x',
      owner: world.owner,
      run: () => Promise.reject(new Error('no')),
    }),
    { message: 'no' },
  )
  assert.equal(eventsOf(world.owner).length, 2, 'what did not begin is no task')
})

test('disposing the plugin ends its tasks and takes its tools and its service away', async () => {
  await using world = await setup()
  const job = await world.begin()
  await world.plugin.dispose()
  assert.equal(job.kills(), 1)
  assert.equal(world.ctx.get('tasks'), undefined)
  assert.deepEqual(world.ctx.tools.deferred(), [])
  assert.equal((eventsOf(world.owner).at(-1) as { status?: string }).status, 'lost')
})

test('an ended owner starts nothing any more', async () => {
  await using world = await setup()
  const handle = await world.ctx.agents.create({ sessionId: SessionId('gone') })
  const job = await world.begin('x', handle.agent)
  await handle.dispose()
  assert.equal(job.kills(), 1)
  await assert.rejects(world.begin('y', handle.agent), { code: 'TASKS_CLOSED' })
})

test('work whose beginning cannot be logged is ended again', async () => {
  await using world = await setup()
  const handle = await world.ctx.agents.create({ sessionId: SessionId('full') })
  const job = work()
  const { agent } = handle
  const run = () => {
    Object.defineProperty(agent.session, 'append', {
      value: () => {
        throw new Error('the log is full')
      },
    })
    return job.run()
  }
  await assert.rejects(world.ctx.tasks.start({ kind: 'bash', label: 'x', owner: agent, run }), {
    message: 'the log is full',
  })
  assert.equal(job.kills(), 1)
})
