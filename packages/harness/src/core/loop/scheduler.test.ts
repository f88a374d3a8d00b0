import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import type { SessionEvent } from '@dsh/protocol'
import { text, toolCalls } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { lintLog } from '../invariants/index.ts'
import { defineTool } from '../tools/index.ts'

/** Tools whose bodies wait until they are let go; `names` says which are asked for, `x…` ones are exclusive. */
async function setup(names: readonly string[], options: { readonly maxParallelToolCalls?: number } = {}) {
  const calls = names.map((name, index) => ({ name: name[0] ?? '', args: { name }, id: `${name}-${index}` }))
  const { ctx, agent: make } = await createHarness([toolCalls(calls), text('done')], options)
  const trace: string[] = []
  const gates = new Map(names.map(name => [name, Promise.withResolvers<string>()]))
  let running = 0
  const peaks: number[] = []
  const tool = (name: string, isParallel: boolean) =>
    defineTool({
      name,
      description: 'Waits.',
      parameters: { name: { type: 'string', required: true } },
      isConcurrencySafe: () => isParallel,
      execute: async args => {
        trace.push(`start ${args.name}`)
        peaks.push(++running)
        try {
          return (await gates.get(args.name)?.promise) ?? ''
        } finally {
          running--
          trace.push(`end ${args.name}`)
        }
      },
    })
  ctx.tools.register(tool('p', true))
  ctx.tools.register(tool('x', false))
  const agent = make()
  const errors: unknown[] = []
  ctx.on('agent/error', ({ error }) => void errors.push(error))
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'tool/call') trace.push(`call ${event.data.callId.split('-')[0]}`)
    if (event.type === 'tool/result') trace.push(`result ${event.data.message.source.callId.split('-')[0]}`)
  })
  const open = (name: string): void => gates.get(name)?.resolve('ok')
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await nextTask()
  }
  const go = async (): Promise<void> => {
    agent.followup(say('go'))
    await settle()
  }
  const end = async (): Promise<void> => {
    for (const name of names) open(name)
    await agent.whenIdle()
    assert.deepEqual(lintLog(agent.session.events), [])
  }
  const results = (): string[] =>
    agent.session.events.flatMap(event => (event.type === 'tool/result' ? [resultWords(event)] : []))
  const only = (word: string): string[] =>
    trace.filter(entry => entry.startsWith(word)).map(entry => entry.slice(word.length + 1))
  return { ctx, agent, trace, only, peaks, errors, open, fail: gates, settle, go, end, results }
}

function resultWords({ data }: SessionEvent<'tool/result'>): string {
  return `${data.message.source.callId.split('-')[0]} ${data.error?.code ?? (data.message.content[0].isError === true ? 'error' : 'ok')}`
}

test('bodies that may run together overlap, and their results keep the order of the message', async () => {
  const { trace, only, go, open, settle, end } = await setup(['p1', 'p2', 'p3'])
  await go()
  assert.deepEqual(only('call'), ['p1', 'p2', 'p3'])
  assert.deepEqual(only('start'), ['p1', 'p2', 'p3'])
  trace.length = 0
  open('p3')
  await settle()
  open('p2')
  await settle()
  assert.deepEqual(trace, ['end p3', 'end p2'])
  open('p1')
  await settle()
  assert.deepEqual(trace, ['end p3', 'end p2', 'end p1', 'result p1', 'result p2', 'result p3'])
  await end()
})

test('a result is logged as soon as all before it are, while later bodies still run', async () => {
  const { trace, go, open, settle, end } = await setup(['p1', 'p2'])
  await go()
  trace.length = 0
  open('p1')
  await settle()
  assert.deepEqual(trace, ['end p1', 'result p1'])
  await end()
})

test('an exclusive call runs alone, and parts the calls around it', async () => {
  const { trace, peaks, go, open, settle, end } = await setup(['p1', 'p2', 'x3', 'p4'])
  await go()
  open('p2')
  await settle()
  assert.ok(!trace.includes('call x3'))
  open('p1')
  await settle()
  assert.deepEqual(trace.slice(-4), ['result p1', 'result p2', 'call x3', 'start x3'])
  open('x3')
  await settle()
  assert.deepEqual(trace.slice(-4), ['end x3', 'result x3', 'call p4', 'start p4'])
  await end()
  assert.deepEqual(peaks, [1, 2, 1, 1])
})

test('exclusive calls are called and answered one after another', async () => {
  const { trace, go, end } = await setup(['x1', 'x2'])
  await go()
  await end()
  assert.deepEqual(
    trace.filter(word => /call|result/.test(word)),
    ['call x1', 'result x1', 'call x2', 'result x2'],
  )
})

test('the pool rolls: a finished body makes room for the next, whatever its place', async () => {
  const { trace, only, peaks, go, open, settle, end } = await setup(['p1', 'p2', 'p3', 'p4'], {
    maxParallelToolCalls: 2,
  })
  await go()
  assert.deepEqual(only('call'), ['p1', 'p2'])
  open('p2')
  await settle()
  assert.deepEqual(trace.slice(-3), ['end p2', 'call p3', 'start p3'])
  await end()
  assert.equal(Math.max(...peaks), 2)
})

test('of two hundred calls in one answer ten run at a time, and each has its result, in order', async () => {
  const names = Array.from({ length: 200 }, (_, index) => `p${index}`)
  const { peaks, results, go, end } = await setup(names)
  await go()
  assert.equal(peaks.length, 10)
  await end()
  assert.equal(Math.max(...peaks), 10)
  assert.deepEqual(
    results(),
    names.map(name => `${name} ok`),
  )
})

test('a pool of one is a row', async () => {
  const { trace, go, end } = await setup(['p1', 'p2'], { maxParallelToolCalls: 1 })
  await go()
  await end()
  assert.deepEqual(
    trace.filter(word => /call|result/.test(word)),
    ['call p1', 'result p1', 'call p2', 'result p2'],
  )
})

test('the size of the pool is read anew for each group', async () => {
  const names = ['p1', 'p2', 'p3', 'p4', 'x5', 'p6', 'p7', 'p8']
  const { ctx, only, go, open, settle, end } = await setup(names, { maxParallelToolCalls: 2 })
  await go()
  ctx.agentLoop.setMaxParallelToolCalls(10)
  for (const count of [0, 1.5, NaN])
    assert.throws(() => ctx.agentLoop.setMaxParallelToolCalls(count), RangeError)
  assert.equal(ctx.agentLoop.maxParallelToolCalls, 10)
  open('p1')
  await settle()
  assert.deepEqual(only('start'), ['p1', 'p2', 'p3'])
  for (const name of ['p2', 'p3', 'p4', 'x5']) open(name)
  await settle()
  assert.deepEqual(only('start').slice(5), ['p6', 'p7', 'p8'])
  await end()
})

test('a call that became exclusive while it waited is a barrier of its own', async () => {
  const { ctx, trace, go, open, settle, end } = await setup(['p1', 'q2', 'p3'], { maxParallelToolCalls: 1 })
  const q = (isParallel: boolean) =>
    defineTool({
      name: 'q',
      description: 'Changes.',
      parameters: {},
      isConcurrencySafe: () => isParallel,
      execute: () => (trace.push('start q2'), 'ok'),
    })
  ctx.agentLoop.setMaxParallelToolCalls(10)
  const parallel = ctx.tools.register(q(true))
  ctx.on('tools/pre-execute', async (execution, next) => {
    if (execution.name === 'p' && trace.length === 1) {
      parallel()
      ctx.tools.register(q(false))
    }
    return next()
  })
  await go()
  assert.deepEqual(trace, ['call p1', 'start p1'])
  open('p1')
  await settle()
  assert.deepEqual(trace.slice(2, 7), ['end p1', 'result p1', 'call q2', 'start q2', 'result q2'])
  await end()
})

test('a call that waits for approval holds up no result before it', async () => {
  const { ctx, only, go, open, settle, end } = await setup(['p1', 'p2'])
  const approval = Promise.withResolvers<void>()
  ctx.on('tools/pre-execute', async (execution, next) => {
    if (execution.callId.startsWith('p2')) await approval.promise
    return next()
  })
  await go()
  open('p1')
  await settle()
  assert.deepEqual([only('call'), only('start'), only('result')], [['p1', 'p2'], ['p1'], ['p1']])
  approval.resolve()
  await end()
})

test('policy looks at one call at a time, in the order of the message', async () => {
  const { ctx, go, end } = await setup(['p1', 'p2', 'p3'])
  let looking = 0
  const seen: string[] = []
  ctx.on('tools/pre-execute', async (execution, next) => {
    assert.equal(++looking, 1)
    await nextTask()
    looking--
    seen.push(execution.callId.slice(0, 2))
    return next()
  })
  await go()
  await end()
  assert.deepEqual(seen, ['p1', 'p2', 'p3'])
})

test('an abort waits for the bodies that run, and answers the calls that do not', async () => {
  const { agent, trace, results, go, open, settle, end } = await setup(['p1', 'p2', 'p3'], {
    maxParallelToolCalls: 2,
  })
  await go()
  agent.cancel({ kind: 'user' })
  await settle()
  assert.equal(agent.status, 'running')
  open('p2')
  await settle()
  assert.ok(!trace.includes('call p3'))
  await end()
  assert.deepEqual(results(), ['p1 ABORTED', 'p2 ABORTED', 'p3 ABORTED_BEFORE_DISPATCH'])
  const last = agent.session.events.findLast(event => event.type === 'tool/result')
  assert.deepEqual(last?.data.message.content[0].content, [
    { type: 'text', text: 'Error: tool call aborted before dispatch' },
  ])
  assert.match(outline(agent.session.events), / tc tc tr tr tc tr se te:aborted\{user\}$/)
})

test('a failed body keeps its own error when the turn was cancelled', async () => {
  const { agent, fail, results, go, end } = await setup(['x1', 'x2'])
  await go()
  agent.cancel({ kind: 'user' })
  fail.get('x1')?.reject(new Error('mine'))
  await end()
  assert.deepEqual(results(), ['x1 error', 'x2 ABORTED_BEFORE_DISPATCH'])
})

test('a context that a result brings enters the next step, also behind a cancelled one', async () => {
  const { ctx, agent, go, end } = await setup(['x1'])
  ctx.on('tools/post-execute', async () => ({ kind: 'accept', additionalContexts: [say('note')] }))
  await go()
  agent.cancel({ kind: 'user' })
  await end()
  assert.deepEqual(
    agent.inbox.nextStep.map(({ content }) => content),
    [[{ type: 'text', text: 'note' }]],
  )
})

test('a context that cannot be queued is reported and costs nothing else', async () => {
  const { ctx, agent, errors, results, go, end } = await setup(['p1', 'p2'])
  const note = say('note')
  ctx.on('tools/post-execute', async () => ({ kind: 'accept', additionalContexts: [note] }))
  await go()
  await end()
  assert.deepEqual(results(), ['p1 ok', 'p2 ok'])
  assert.equal((errors[0] as { code?: string }).code, 'DUPLICATE_MESSAGE')
  assert.match(outline(agent.session.events), /te:completed$/)
})

test('where a call cannot be logged, those that run are answered, the rest never started, and the turn fails', async () => {
  const { ctx, agent, errors, results, go, open, settle, end } = await setup(['p1', 'p2', 'p3'])
  ctx.on('internal/dispatch', (_mode, name, args) => {
    const event = args[1] as SessionEvent | undefined
    if (name === 'session/event' && event?.type === 'tool/call' && event.data.callId.startsWith('p2'))
      throw new Error('no room')
  })
  await go()
  open('p1')
  await settle()
  await end()
  assert.deepEqual(results(), ['p1 ok', 'p2 TOOL_NOT_STARTED', 'p3 TOOL_NOT_STARTED'])
  assert.deepEqual(
    errors.map(error => (error as Error).message),
    ['no room'],
  )
  assert.match(outline(agent.session.events), / tc tr tr tr se te:error\{UNKNOWN\}$/)
  const [, second] = agent.session.events.filter(event => event.type === 'tool/result')
  assert.equal(second?.sourceEventSeqs, undefined)
})

test('where a result cannot be logged, its call is answered as of unknown outcome', async () => {
  const { ctx, agent, results, go, end } = await setup(['x1', 'x2'])
  let refused = 0
  ctx.on('internal/dispatch', (_mode, name, args) => {
    const event = args[1] as SessionEvent | undefined
    if (name === 'session/event' && event?.type === 'tool/result' && refused++ === 0)
      throw new Error('no room')
  })
  await go()
  await end()
  assert.deepEqual(results(), ['x1 TOOL_OUTCOME_UNKNOWN', 'x2 TOOL_NOT_STARTED'])
  const call = agent.session.events.find(event => event.type === 'tool/call')
  const result = agent.session.events.find(event => event.type === 'tool/result')
  assert.deepEqual(result?.sourceEventSeqs, [call?.seq])
})

test('no body starts after a failure, also of a call that was waiting for approval', async () => {
  const { ctx, only, results, go, open, settle, end } = await setup(['p1', 'p2', 'p3'])
  const approval = Promise.withResolvers<void>()
  ctx.on('tools/pre-execute', async (execution, next) => {
    if (execution.callId.startsWith('p2')) await approval.promise
    return next()
  })
  let refused = 0
  ctx.on('internal/dispatch', (_mode, name, args) => {
    const event = args[1] as SessionEvent | undefined
    if (name === 'session/event' && event?.type === 'tool/result' && refused++ === 0)
      throw new Error('no room')
  })
  await go()
  open('p1')
  await settle()
  approval.resolve()
  await end()
  assert.deepEqual(only('start'), ['p1'])
  assert.deepEqual(results(), ['p1 TOOL_OUTCOME_UNKNOWN', 'p2 TOOL_OUTCOME_UNKNOWN', 'p3 TOOL_NOT_STARTED'])
})

test('what a tool gives to surfaces is in the log beside its result, and nowhere where it gives nothing', async () => {
  const calls = toolCalls([
    { name: 'count', args: {}, id: 'a' },
    { name: 'plain', args: {}, id: 'b' },
  ])
  const { ctx, agent: make } = await createHarness([calls, text('done')])
  ctx.tools.register(
    defineTool({
      name: 'count',
      description: 'Counts.',
      parameters: {},
      output: { schema: { type: 'number' }, render: () => 'three', presentationMeta: (_args, n) => ({ n }) },
      execute: () => 3,
    }),
  )
  ctx.tools.register(
    defineTool({ name: 'plain', description: 'Plain.', parameters: {}, execute: () => 'ok' }),
  )
  const agent = make()
  agent.followup(say('go'))
  await agent.whenIdle()
  const results = agent.session.events.flatMap(event => (event.type === 'tool/result' ? [event.data] : []))
  assert.deepEqual(
    results.map(data => ('meta' in data ? data.meta : 'none')),
    [{ n: 3 }, 'none'],
  )
})

test('arguments are parsed once: nothing is an empty object, and what is no JSON stands for itself', async () => {
  const { ctx, agent: make } = await createHarness([
    toolCalls([
      { name: 'any', args: '' },
      { name: 'any', args: '{"a":' },
      { name: 'any', args: [1] },
    ]),
    text('done'),
  ])
  const seen: unknown[] = []
  ctx.on('tools/pre-execute', (execution, next) => (seen.push(execution.arguments), next()))
  ctx.tools.register(defineTool({ name: 'any', description: 'Any.', parameters: {}, execute: () => 'ok' }))
  const agent = make()
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.deepEqual(seen, [{}, '{"a":', [1]])
  const codes = agent.session.events.flatMap(event =>
    event.type === 'tool/result' ? [event.data.error?.code] : [],
  )
  assert.deepEqual(codes, [undefined, 'INVALID_ARGS', 'INVALID_ARGS'])
})
