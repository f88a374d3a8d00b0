import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UserMessage } from '@dsh/protocol'
import { bareTool, codeOf, contextsOf, note, textOf } from '../../testing/bare-tool.ts'
import type { Body } from '../../testing/bare-tool.ts'
import { defineTool } from './index.ts'
import type { ToolExecutionResult, ToolRunContext } from './index.ts'

test('a value becomes what the model reads and what surfaces are given', async () => {
  const { run } = bareTool()
  assert.deepEqual(await run(), {
    isError: false,
    value: 'done',
    content: [{ type: 'text', text: '[done]' }],
    meta: { shown: 'done' },
  })
})

test('what surfaces are given is not made for nested calls', async () => {
  const { run } = bareTool()
  assert.equal((await run({ parent: Symbol('outer') })).meta, undefined)
})

test('a value outside of the declaration, or outside of JSON, is an invalid output', async () => {
  const output = async (value: unknown): Promise<string> => {
    const result = await bareTool(() => value).run()
    assert.equal(codeOf(result), 'INVALID_TOOL_OUTPUT')
    return textOf(result)
  }
  assert.equal(
    await output(1),
    'Error: tool "work" gave an invalid result: value: expected string, got number',
  )
  assert.match(await output(undefined), /the value: value is undefined/)
  assert.match(await output(new Map()), /the value: value is an instance of Map/)
})

test('a render that throws, or gives no content, is an invalid output', async () => {
  const { output } = defineTool({ name: 'x', description: '', parameters: {}, execute: () => '' })
  const broken = async (part: object): Promise<string> => {
    const result = await bareTool(undefined, { output: { ...output, ...part } }).run()
    assert.equal(codeOf(result), 'INVALID_TOOL_OUTPUT')
    return textOf(result)
  }
  const fail = (): never => {
    throw new Error('boom')
  }
  assert.match(await broken({ render: fail }), /render: boom/)
  assert.match(await broken({ render: () => 'text' }), /render: content is not a list of content blocks/)
  assert.match(await broken({ render: () => [{}] }), /render: content\[0\] has no type/)
  assert.match(await broken({ render: () => [{ type: 'text' }] }), /render: content\[0\] has no text/)
  assert.match(await broken({ presentationMeta: fail }), /presentationMeta: boom/)
  assert.match(await broken({ presentationMeta: () => ({ a: 0n }) }), /presentationMeta: meta\.a is a bigint/)
})

test('half characters are replaced in what a model reads', async () => {
  const { run } = bareTool(() => 'a\ud800b')
  assert.equal(textOf(await run()), '[a\ufffdb]')
  const { run: fail } = bareTool(() => {
    throw new Error('\udc00')
  })
  assert.equal(textOf(await fail()), 'Error: \ufffd')
})

test('contexts come from the tool first, then from wrappers, then from judges', async () => {
  const { ctx, run } = bareTool((_args, exec) => {
    exec.deferContext(note('tool 1'))
    exec.deferContext(note('tool 2'))
    return 'done'
  })
  ctx.on('tools/execute', async (_exec, next) => ({
    ...(await next()),
    additionalContexts: [note('wrapper')],
  }))
  ctx.on('tools/post-execute', async () => ({ kind: 'accept', additionalContexts: [note('judge')] }))
  assert.deepEqual(contextsOf(await run()), ['tool 1', 'tool 2', 'wrapper', 'judge'])
})

test('a context that is no user message fails the body', async () => {
  const { run } = bareTool((_args, exec) => (exec.deferContext({} as UserMessage), 'done'))
  assert.equal(textOf(await run()), 'Error: the context is not a user message')
})

test('what a body asks for after its end is reported and changes nothing', async () => {
  let late: ToolRunContext | undefined
  const { ctx, run } = bareTool((_args, exec) => ((late = exec), 'done'))
  const errors: unknown[] = []
  ctx.on('internal/error', error => void errors.push(error))
  const result = await run()
  late?.deferContext(note('late'))
  late?.concludeTurn()
  assert.deepEqual(errors.map(String), [
    'TypeError: tool "work" called deferContext after its end',
    'TypeError: tool "work" called concludeTurn after its end',
  ])
  assert.equal(contextsOf(result), undefined)
})

test('a success may conclude the turn, a failure never does', async () => {
  const { ctx, run } = bareTool((_args, exec) => (exec.concludeTurn(), 'done'))
  const result = await run()
  assert.equal(!result.isError && result.concludesTurn, true)
  ctx.on('tools/post-execute', async () => ({ kind: 'block', feedback: 'no' }))
  assert.equal('concludesTurn' in (await run()), false)
})

test('a judge who replaces the content leaves value and meta', async () => {
  const { ctx, run } = bareTool()
  ctx.on('tools/post-execute', async () => ({ kind: 'accept', content: [{ type: 'text', text: 'short' }] }))
  assert.deepEqual(await run(), {
    isError: false,
    value: 'done',
    content: [{ type: 'text', text: 'short' }],
    meta: { shown: 'done' },
  })
})

test('a judge who replaces the value has content and meta made anew', async () => {
  const { ctx, run } = bareTool((_args, exec) => (exec.concludeTurn(), 'done'))
  let value: unknown = 'other'
  ctx.on('tools/post-execute', async () => ({ kind: 'accept', value }) as never)
  assert.deepEqual(await run(), {
    isError: false,
    value: 'other',
    content: [{ type: 'text', text: '[other]' }],
    meta: { shown: 'other' },
    concludesTurn: true,
  })
  value = 1
  assert.equal(codeOf(await run()), 'INVALID_TOOL_OUTPUT')
})

test('a judge who blocks takes the value and the contexts of the tool away', async () => {
  const { ctx, run } = bareTool((_args, exec) => (exec.deferContext(note('tool')), 'done'))
  ctx.on('tools/post-execute', async () => ({
    kind: 'block',
    feedback: 'run the tests first',
    additionalContexts: [note('judge')],
  }))
  const result = await run()
  assert.deepEqual(result, {
    isError: true,
    error: { message: 'run the tests first' },
    content: [{ type: 'text', text: 'run the tests first' }],
    additionalContexts: [note('judge')],
  })
})

test('a judgement that contradicts itself or the result is an error', async () => {
  const judged = async (decision: unknown, body?: Body): Promise<string> => {
    const { ctx, run } = bareTool(body)
    ctx.on('tools/post-execute', (async () => decision) as never)
    return textOf(await run())
  }
  const fail: Body = () => {
    throw new Error('body')
  }
  assert.equal(
    await judged({ kind: 'accept', content: [], value: 'x' }),
    'Error: a tools/post-execute listener replaced both content and value',
  )
  assert.equal(
    await judged({ kind: 'accept', value: 'x' }, fail),
    'Error: a tools/post-execute listener gave a value to a failed call',
  )
  assert.equal(await judged(undefined), 'Error: a tools/post-execute listener gave no decision')
  assert.equal(
    await judged({ kind: 'accept', content: 'x' }),
    'Error: content is not a list of content blocks',
  )
})

test('a value for a tool that is gone is an error', async () => {
  const { ctx, input } = bareTool()
  const undo = ctx.tools.register(
    defineTool({ name: 'x', description: '', parameters: {}, execute: () => 'old' }),
  )
  ctx.on('tools/post-execute', async () => {
    undo()
    return { kind: 'accept', value: 'new' }
  })
  const result = await ctx.tools.execute(input({ name: 'x' }))
  assert.equal(textOf(result), 'Error: a tools/post-execute listener gave a value, but the tool is gone')
})

test('the final content is bounded once, whatever happened before', async () => {
  const seen: string[] = []
  const { ctx, controller, run } = bareTool(undefined, {
    finalizeContent: (_exec, result) => {
      seen.push(textOf(result))
      return [{ type: 'text', text: 'bounded' }]
    },
  })
  assert.equal(textOf(await run()), 'bounded')
  const stop = ctx.on('tools/execute', () => {
    throw new Error('wrapper')
  })
  assert.equal(textOf(await run()), 'bounded')
  stop()
  await run({ arguments: { a: 0n } })
  controller.abort()
  await run()
  assert.deepEqual(seen, [
    '[done]',
    'Error: wrapper',
    'Error: arguments.a is a bigint, which JSON does not keep',
    'Error: tool call aborted before dispatch',
  ])
})

test('a bound that breaks is an error, and is not asked again', async () => {
  let asked = 0
  const { run } = bareTool(undefined, {
    finalizeContent: () => {
      asked++
      throw new Error('cannot bound')
    },
  })
  assert.equal(textOf(await run()), 'Error: cannot bound')
  assert.equal(asked, 1)
})

test('the bound of the tool that was asked for applies, also when it is gone', async () => {
  const { ctx, input } = bareTool()
  const undo = ctx.tools.register({
    ...defineTool({ name: 'x', description: '', parameters: {}, execute: () => 'x' }),
    finalizeContent: () => [{ type: 'text', text: 'bounded' }],
  })
  const call = ctx.tools.open(input({ name: 'x' }))
  undo()
  await call.prepare()
  await call.dispatch()
  const result = await call.finish()
  assert.deepEqual([codeOf(result), textOf(result)], ['UNKNOWN_TOOL', 'bounded'])
})

test('every call is told exactly once, frozen, as the result that is returned', async () => {
  const { ctx, controller, run } = bareTool()
  const told: [frozen: boolean, result: ToolExecutionResult][] = []
  ctx.on('tools/result', () => {
    throw new Error('contained')
  })
  ctx.on('tools/result', (exec, result) => {
    told.push([Object.isFrozen(exec) && Object.isFrozen(result) && Object.isFrozen(result.content), result])
  })
  const returned = [await run(), await run({ name: 'nothing' }), await run({ arguments: { a: 0n } })]
  controller.abort()
  returned.push(await run())
  assert.deepEqual(
    told.map(([, result]) => returned.indexOf(result)),
    [0, 1, 2, 3],
  )
  assert.ok(told.every(([frozen]) => frozen))
})

test('a refused dispatch of the result event does not reject the call', async () => {
  const { ctx, run } = bareTool()
  ctx.on('internal/dispatch', (_mode, name) => {
    if (name === 'tools/result') throw new Error('refused')
  })
  assert.equal(textOf(await run()), '[done]')
})
