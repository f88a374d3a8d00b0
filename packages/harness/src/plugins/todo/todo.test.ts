import assert from 'node:assert/strict'
import { test } from 'node:test'
import { textOf } from '@dsh/protocol'
import type { JsonValue, TodoItem } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { lintLog } from '../../core/invariants/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { text, toolCall } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { sessionProjections } from '../session-projections/index.ts'
import { todo, todos } from './index.ts'
import type { TodoConfig } from './index.ts'

const write = (...items: readonly (readonly [string, string])[]): ScriptEntry =>
  toolCall('todo_write', { todos: items.map(([content, status]) => ({ content, status })) })

async function setup(script: readonly ScriptEntry[], config?: Partial<TodoConfig>) {
  const { ctx, adapter, agent: create } = await createHarness(script)
  const plugin = ctx.plugin(todo, config)
  const agent = create()
  const turn = async (words = 'go'): Promise<void> => {
    agent.followup(say(words))
    await agent.whenIdle()
    assert.deepEqual(lintLog(agent.session.events), [])
  }
  const results = (): string[] =>
    agent.session.events.flatMap(event =>
      event.type === 'tool/result' ? [textOf(event.data.message.content[0].content)] : [],
    )
  const list = (): readonly TodoItem[] => agent.session.fold(todos).items
  const lists = (): number => agent.session.events.filter(({ type }) => type === 'todo/write').length
  return { ctx, plugin, adapter, agent, turn, results, list, lists }
}

/** What a compaction does: everything before the model becomes one message. */
function compact({ session }: Agent): void {
  const seqs = session.surface.nodes
  const [start = 0] = seqs
  const end = seqs.at(-1) ?? 0
  const summary = say('the story so far')
  session.append('user/message', summary, {
    surfaceOp: { op: 'replace', start, end },
    sourceEventSeqs: seqs.toSorted((a, b) => a - b),
  })
}

test('each call replaces the whole list, and tells how it stands', async () => {
  const { turn, results, list, agent } = await setup([
    write(['  read ', 'in_progress'], ['write', 'pending']),
    write(['read', 'completed'], ['write', 'in_progress'], ['test', 'in_progress']),
    text('done'),
  ])
  await turn()
  assert.deepEqual(results(), [
    '1 pending, 1 in progress, 0 completed',
    '0 pending, 2 in progress, 1 completed',
  ])
  assert.deepEqual(list(), [
    { content: 'read', status: 'completed' },
    { content: 'write', status: 'in_progress' },
    { content: 'test', status: 'in_progress' },
  ])
  const first = agent.session.events.find(event => event.type === 'todo/write')
  assert.deepEqual(first?.data, {
    todos: [
      { content: 'read', status: 'in_progress' },
      { content: 'write', status: 'pending' },
    ],
  })
})

test('a rejected list leaves no trace in the log, and the reason names the item', async () => {
  const rejected: [JsonValue, RegExp][] = [
    [[{ content: ' \n', status: 'pending' }], /todos\[0\]\.content is blank/],
    [
      [
        { content: 'a', status: 'pending' },
        { content: 'a ', status: 'completed' },
      ],
      /todos\[1\]\.content is the same as that of todos\[0\]/,
    ],
    [[{ content: 'a', status: 'done' }], /status/],
    [[{ content: 'a', status: 'pending', owner: 'x' }], /owner/],
    ['buy milk', /todos/],
  ]
  const calls = rejected.map(([given]) => toolCall('todo_write', { todos: given }))
  const { turn, results, list, lists } = await setup([...calls, text('sorry')])
  await turn()
  for (const [index, [, reason]] of rejected.entries()) assert.match(results()[index] ?? '', reason)
  assert.deepEqual([lists(), list()], [0, []])
})

test('where only one item may be in progress, the model is told and two are refused', async () => {
  const { turn, results, adapter, lists } = await setup(
    [write(['a', 'in_progress'], ['b', 'pending'], ['c', 'in_progress']), text('sorry')],
    { allowParallelInProgress: false },
  )
  await turn()
  assert.equal(results()[0], 'Error: invalid arguments: 2 todos are in_progress (0, 2), at most one may be')
  assert.equal(lists(), 0)
  assert.match(adapter.requests[0]?.tools?.[0]?.description ?? '', / Only one may be in progress\.$/)
})

test('the list lasts from turn to turn, and is not repeated while the model sees it', async () => {
  const { turn, list, agent } = await setup([write(['a', 'pending']), text('1'), text('2'), text('3')])
  await turn('one')
  await turn('two')
  await turn('three')
  assert.equal(list().length, 1)
  assert.equal(agent.session.events.filter(event => event.type === 'user/message').length, 3)
})

test('a list that a compaction hides is shown once more with the next message', async () => {
  const { turn, agent, adapter } = await setup([
    write(['a', 'completed'], ['b', 'in_progress'], ['c', 'pending']),
    text('1'),
    text('2'),
    text('3'),
    text('4'),
  ])
  await turn('one')
  compact(agent)
  await turn('two')
  await turn('three')
  const shown = (request: number): string[] =>
    (adapter.requests[request]?.messages ?? []).flatMap(({ content }) =>
      content.flatMap(block =>
        block.type === 'text' && block.text.startsWith('Your todo') ? [block.text] : [],
      ),
    )
  const recalled = 'Your todo list, as you last wrote it:\n[x] a\n[>] b\n[ ] c'
  assert.deepEqual([shown(2), shown(3)], [[recalled], [recalled]])
  compact(agent)
  await turn('four')
  assert.deepEqual(shown(4), [recalled])
})

test('a compaction in the middle of a turn brings the list back with the next step', async () => {
  const { ctx, turn, agent, adapter } = await setup([write(['a', 'pending']), text('done')])
  ctx.on('agent/pre-step', (_, next) => {
    if (adapter.requests.length === 1) compact(agent)
    return next()
  })
  await turn()
  const [, last] = adapter.requests
  assert.deepEqual(
    last?.messages.map(({ content }) => textOf(content)),
    ['the story so far', 'Your todo list, as you last wrote it:\n[ ] a'],
  )
})

test('a finished list is not shown again, and neither is one whose result was only made shorter', async () => {
  const { ctx, turn, agent, adapter } = await setup([
    write(['a', 'pending']),
    text('1'),
    text('2'),
    write(['a', 'completed']),
    text('3'),
    text('4'),
  ])
  ctx.on('agent/pre-step', ({ turn: number }, next) => {
    const result = agent.session.events.find(event => event.type === 'tool/result')
    if (number !== 2 || result === undefined) return next()
    agent.session.append('tool/result', result.data, {
      surfaceOp: { op: 'replace', start: result.seq, end: result.seq },
      sourceEventSeqs: [result.seq],
    })
    return next()
  })
  await turn('one')
  await turn('two')
  assert.equal(adapter.requests[2]?.messages.length, 5)
  await turn('three')
  compact(agent)
  await turn('four')
  assert.equal(adapter.requests[5]?.messages.length, 2)
})

test('without an agent there is no list to write', async () => {
  const { ctx } = await setup([])
  const signal = new AbortController().signal
  const input = { callId: 'c' as never, name: 'todo_write', arguments: { todos: [] }, signal }
  const result = await ctx.tools.execute(input)
  assert.equal(textOf(result.content), 'Error: a todo list belongs to an agent, and no agent made this call')
})

test('the list is a projection of the session', async () => {
  const { ctx, turn, agent } = await setup([write(['a', 'pending']), text('1'), text('2')])
  await ctx.plugin(sessionProjections)
  await turn()
  await turn()
  const { values } = ctx.sessionProjections.snapshot(agent.session)
  assert.deepEqual(values['todo'], [{ content: 'a', status: 'pending' }])
})

test('tool and reminder go with the plugin', async () => {
  const { plugin, turn, agent, adapter } = await setup([write(['a', 'pending']), text('1'), text('2')])
  await turn()
  compact(agent)
  await plugin.dispose()
  await turn()
  assert.deepEqual([adapter.requests[2]?.tools, adapter.requests[2]?.messages.length], [undefined, 2])
})

test('what the model is told of the tool', async () => {
  const { turn, adapter } = await setup([text('a')])
  await turn()
  const item = {
    type: 'object',
    properties: {
      content: { type: 'string' },
      status: { type: 'string', enum: ['pending', 'in_progress', 'completed'] },
    },
    additionalProperties: false,
    required: ['content', 'status'],
  }
  assert.deepEqual(adapter.requests[0]?.tools, [
    {
      name: 'todo_write',
      description:
        'Keep a list of tasks for work of three or more steps. Each call replaces the whole list; update it as you go.',
      parameters: {
        type: 'object',
        properties: { todos: { type: 'array', items: item } },
        required: ['todos'],
      },
    },
  ])
})
