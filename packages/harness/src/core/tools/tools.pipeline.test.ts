import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CallId } from '@dsh/protocol'
import { HarnessError } from '../../kernel/index.ts'
import { createScope } from '../scope/index.ts'
import { bareTool, codeOf, contextsOf, note, textOf } from '../../testing/bare-tool.ts'
import type { Body } from '../../testing/bare-tool.ts'
import { defineTool } from './index.ts'
import type { ToolExecutionResult, ToolRunContext } from './index.ts'

function concludes(result: ToolExecutionResult): boolean {
  return !result.isError && result.concludesTurn === true
}

test('the stages come in order, each once', async () => {
  const { ctx, calls, run } = bareTool(undefined, {
    finalizeContent: () => void calls.push('finalizeContent'),
  })
  ctx.on('tools/pre-execute', (_exec, next) => (calls.push('pre-execute'), next()))
  ctx.tools.guard(() => void calls.push('guard'))
  ctx.on('tools/execute', (_exec, next) => (calls.push('execute'), next()))
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  ctx.on('tools/result', () => void calls.push('result'))
  await run()
  assert.deepEqual(calls, [
    'pre-execute',
    'guard',
    'execute',
    'body',
    'post-execute',
    'finalizeContent',
    'result',
  ])
})

test('listeners and the body are given one frozen copy of the arguments', async () => {
  const given = { path: 'a', list: [1] }
  const seen: unknown[] = []
  const { ctx, run } = bareTool(args => (seen.push(args), 'done'))
  ctx.on('tools/pre-execute', (exec, next) => (seen.push(exec.arguments), next()))
  const running = run({ arguments: given })
  given.list.push(2)
  await running
  assert.equal(seen[0], seen[1])
  assert.deepEqual(seen[0], { path: 'a', list: [1] })
  assert.ok(Object.isFrozen(seen[0]) && Object.isFrozen((seen[0] as { list: unknown }).list))
})

test('no arguments are an empty object', async () => {
  const seen: unknown[] = []
  const { run } = bareTool(args => (seen.push(args), 'done'))
  await run({ arguments: undefined })
  await run({ arguments: {} })
  assert.deepEqual(seen, [{}, {}])
})

test('a call is its own root unless it says otherwise, and has a token of its own', async () => {
  const seen: ToolRunContext[] = []
  const { run } = bareTool((_args, exec) => (seen.push(exec), 'done'))
  await run()
  await run({ rootCallId: CallId('root') })
  assert.deepEqual(
    seen.map(exec => exec.rootCallId),
    ['c1', 'root'],
  )
  assert.equal(typeof seen[0]?.token, 'symbol')
  assert.notEqual(seen[0]?.token, seen[1]?.token)
})

test('arguments that JSON does not keep fail the call before anyone is asked', async () => {
  const { ctx, calls, run } = bareTool()
  ctx.on('tools/pre-execute', (_exec, next) => (calls.push('pre-execute'), next()))
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  const result = await run({ arguments: { a: NaN } })
  assert.equal(textOf(result), 'Error: arguments.a is NaN, which JSON does not keep')
  assert.equal(codeOf(result), 'INVALID_ARGS')
  assert.deepEqual(calls, [])
})

test('a caller who already gave up gets an abort, and nobody is asked', async () => {
  const { ctx, calls, controller, run } = bareTool()
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  controller.abort()
  const result = await run()
  assert.equal(textOf(result), 'Error: tool call aborted before dispatch')
  assert.deepEqual(result.isError && result.error.info, {
    name: 'AbortError',
    code: 'ABORTED_BEFORE_DISPATCH',
  })
  assert.deepEqual(calls, [])
  assert.equal(codeOf(await run({ arguments: { a: NaN } })), 'INVALID_ARGS')
})

test('a denial keeps guards, wrappers and body from running, and is told like any result', async () => {
  const { ctx, calls, run } = bareTool()
  ctx.on('tools/pre-execute', async () => ({ kind: 'deny', reason: 'not today' }))
  ctx.tools.guard(() => void calls.push('guard'))
  ctx.on('tools/execute', (_exec, next) => (calls.push('execute'), next()))
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  ctx.on('tools/result', () => void calls.push('result'))
  assert.deepEqual(await run(), {
    isError: true,
    error: { message: 'not today' },
    content: [{ type: 'text', text: 'Error: not today' }],
  })
  assert.deepEqual(calls, ['post-execute', 'result'])
})

test('a denial or block without a reason says that policy said no', async () => {
  const { ctx, run } = bareTool()
  ctx.on('tools/post-execute', (async () => ({ kind: 'block' })) as never)
  assert.equal(textOf(await run()), 'blocked by policy')
  const { ctx: other, run: runOther } = bareTool()
  other.on('tools/pre-execute', (async () => ({ kind: 'deny' })) as never)
  assert.equal(textOf(await runOther()), 'Error: denied by policy')
})

test('no order of listeners turns the denial of a guard into permission', async () => {
  const { ctx, calls, run } = bareTool()
  ctx.tools.guard(() => undefined)
  ctx.tools.guard(({ name }) => `${name} is closed`)
  ctx.tools.guard(() => 'never asked')
  ctx.on('tools/pre-execute', async () => ({ kind: 'allow' }), { prepend: true })
  assert.equal(textOf(await run()), 'Error: work is closed')
  assert.deepEqual(calls, [])
})

test('a guard of a scope concerns that scope alone, after those of everybody', async () => {
  const { ctx, run } = bareTool()
  const [parent, child, other] = [{}, {}, {}]
  const order: string[] = []
  createScope(ctx, child, { parent }).ctx.tools.guard(() => (order.push('child'), 'no'))
  createScope(ctx, parent).ctx.tools.guard(() => void order.push('parent'))
  ctx.tools.guard(() => void order.push('everybody'))
  assert.equal((await run({ agent: child })).isError, true)
  assert.deepEqual(order, ['everybody', 'parent', 'child'])
  assert.equal((await run({ agent: other })).isError, false)
  assert.equal((await run()).isError, false)
})

test('a guard that breaks, or gives no clear answer, refuses', async () => {
  const { ctx, calls, run } = bareTool()
  const undo = ctx.tools.guard(() => {
    throw new HarnessError('POLICY_BROKEN', 'cannot tell')
  })
  const result = await run()
  assert.deepEqual(result.isError && result.error, {
    message: 'cannot tell',
    info: { name: 'HarnessError', code: 'POLICY_BROKEN' },
  })
  undo()
  ctx.tools.guard((async () => undefined) as never)
  assert.equal(textOf(await run()), 'Error: a tool guard gave neither a reason nor undefined')
  assert.deepEqual(calls, [])
})

test('an error of ours has the name of its class where it has none of its own', async () => {
  class PolicyError extends HarnessError {}
  const { ctx, run } = bareTool()
  ctx.tools.guard(() => {
    throw new PolicyError('POLICY_BROKEN', 'cannot tell')
  })
  const result = await run()
  assert.deepEqual(result.isError && result.error.info, { name: 'PolicyError', code: 'POLICY_BROKEN' })
})

test('a pre-execute listener that breaks, or decides nothing, refuses', async () => {
  const { ctx, calls, run } = bareTool()
  const stop = ctx.on('tools/pre-execute', () => {
    throw new Error('policy file unreadable')
  })
  assert.equal(textOf(await run()), 'Error: policy file unreadable')
  stop()
  ctx.on('tools/pre-execute', (async () => undefined) as never)
  assert.equal(textOf(await run()), 'Error: a tools/pre-execute listener gave no decision')
  assert.deepEqual(calls, [])
})

test('listeners of a scope judge the calls of that scope', async () => {
  const { ctx, run } = bareTool()
  const agent = {}
  createScope(ctx, agent).ctx.on('tools/pre-execute', async () => ({ kind: 'deny', reason: 'mine' }))
  assert.equal(textOf(await run({ agent })), 'Error: mine')
  assert.equal(textOf(await run({ agent: {} })), '[done]')
})

test('a tool that is not there is an error that names what is near', async () => {
  const { run } = bareTool()
  const result = await run({ name: 'functions.Work' })
  assert.deepEqual(result, {
    isError: true,
    error: {
      message: 'unknown tool "functions.Work"; did you mean "work"?',
      info: { name: 'ToolNotFoundError', code: 'UNKNOWN_TOOL' },
    },
    content: [{ type: 'text', text: 'Error: unknown tool "functions.Work"; did you mean "work"?' }],
  })
})

test('a tool that goes while policy is asked is unknown, and one that is replaced runs anew', async () => {
  const { ctx, input } = bareTool()
  const undo = ctx.tools.register(
    defineTool({ name: 'x', description: '', parameters: {}, execute: () => 'old' }),
  )
  const gone = ctx.tools.open(input({ name: 'x' }))
  const replaced = ctx.tools.open(input({ name: 'x' }))
  await Promise.all([gone.prepare(), replaced.prepare()])
  undo()
  await gone.dispatch()
  ctx.tools.register(defineTool({ name: 'x', description: '', parameters: {}, execute: () => 'new' }))
  await replaced.dispatch()
  assert.equal(codeOf(await gone.finish()), 'UNKNOWN_TOOL')
  assert.equal(textOf(await replaced.finish()), 'new')
})

test('what a body throws is a result: ours with name and code, others with their message', async () => {
  class FileError extends HarnessError<'NO_FILE'> {
    static {
      this.prototype.name = 'FileError'
    }
  }
  const thrown = async (error: unknown): Promise<unknown> => {
    const result = await bareTool(() => {
      throw error
    }).run()
    return result.isError && result.error
  }
  assert.deepEqual(await thrown(new FileError('NO_FILE', 'no such file')), {
    message: 'no such file',
    info: { name: 'FileError', code: 'NO_FILE' },
  })
  const system = Object.assign(new Error('open failed'), { code: 'ENOENT' })
  assert.deepEqual(await thrown(system), { message: 'open failed' })
  assert.deepEqual(await thrown('just text'), { message: 'just text' })
  assert.deepEqual(await thrown(undefined), { message: 'undefined' })
})

test('a throw that resists being read is still a result', async () => {
  const trap = (): never => {
    throw new Error('trapped')
  }
  const hostile = [
    new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap }),
    { toString: trap },
    {
      get message() {
        return trap()
      },
    },
    Object.create(null) as object,
  ]
  for (const error of hostile) {
    const result = await bareTool(() => {
      throw error
    }).run()
    assert.equal(textOf(result), 'Error: <unprintable thrown value>')
  }
})

test('a body may reject, throw or fail in any other form, and callers see one form', async () => {
  const error = new Error('same')
  const bodies: Body[] = [
    () => {
      throw error
    },
    async () => {
      throw error
    },
    // oxlint-disable-next-line unicorn/no-thenable -- a foreign promise
    () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(error) }),
  ]
  for (const body of bodies) {
    assert.deepEqual(await bareTool(body).run(), {
      isError: true,
      error: { message: 'same' },
      content: [{ type: 'text', text: 'Error: same' }],
    })
  }
})

test('a wrapper may put its own signal in, and the body hears both', async () => {
  const reasons: unknown[] = []
  const { ctx, controller, run } = bareTool(
    (_args, exec) =>
      new Promise(resolve => {
        exec.signal.addEventListener('abort', () => (reasons.push(exec.signal.reason), resolve('stopped')))
      }),
  )
  const own = new AbortController()
  const after: unknown[] = []
  ctx.on('tools/execute', async (exec, next) => {
    exec.signal = own.signal
    const running = next()
    own.abort('timeout')
    const result = await running
    after.push(exec.signal === own.signal)
    return result
  })
  let signal: unknown
  ctx.on('tools/post-execute', (exec, _result, next) => ((signal = exec.signal), next()))
  assert.equal(textOf(await run()), '[stopped]')
  assert.deepEqual(reasons, ['timeout'])
  assert.deepEqual(after, [true])
  assert.equal(signal, controller.signal)
})

test('the signals hold no listener of the pipeline once the body is over', async () => {
  const { ctx, input } = bareTool()
  const own = new AbortController()
  ctx.on('tools/execute', (exec, next) => {
    exec.signal = own.signal
    return next()
  })
  const caller = new AbortController()
  const held = new Map<AbortSignal, number>()
  for (const { signal } of [own, caller]) {
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    const count = (by: number): void => void held.set(signal, (held.get(signal) ?? 0) + by)
    signal.addEventListener = (...args: Parameters<typeof add>) => (count(1), add(...args))
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (count(-1), remove(...args))
  }
  await ctx.tools.execute(input({ signal: caller.signal }))
  assert.deepEqual([...held.values()], [0, 0])
})

test('a body that ignores the signal is awaited, and its success is an abort', async () => {
  const gate = Promise.withResolvers<string>()
  const { controller, run } = bareTool(() => gate.promise)
  let settled = false
  const running = run().finally(() => (settled = true))
  await new Promise(setImmediate)
  controller.abort()
  await new Promise(setImmediate)
  assert.equal(settled, false)
  gate.resolve('late')
  const result = await running
  assert.equal(textOf(result), 'Error: tool call aborted')
  assert.deepEqual(result.isError && result.error.info, { name: 'AbortError', code: 'ABORTED' })
})

test('a body that fails on its own while it is aborted keeps its error; one that says "aborted" is an abort', async () => {
  const failing = async (
    errorOf: (signal: AbortSignal) => unknown,
    reason?: unknown,
  ): Promise<ToolExecutionResult> => {
    const { controller, run } = bareTool(async (_args, exec) => {
      controller.abort(reason)
      throw errorOf(exec.signal)
    })
    return run()
  }
  assert.equal(textOf(await failing(() => new Error('disk full'))), 'Error: disk full')
  assert.equal(codeOf(await failing(signal => signal.reason)), 'ABORTED')
  assert.equal(codeOf(await failing(signal => signal.reason, { kind: 'user' })), 'ABORTED')
  assert.equal(codeOf(await failing(() => new DOMException('stop', 'AbortError'))), 'ABORTED')
})

test('an abort while policy is asked keeps the body from running', async () => {
  const { ctx, calls, controller, run } = bareTool()
  ctx.on('tools/pre-execute', async (_exec, next) => {
    controller.abort()
    return next()
  })
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  assert.equal(codeOf(await run()), 'ABORTED_BEFORE_DISPATCH')
  assert.deepEqual(calls, ['post-execute'])
})

test('an abort that makes a policy break is an abort', async () => {
  const { ctx, calls, controller, run } = bareTool()
  ctx.on('tools/pre-execute', async exec => {
    controller.abort()
    exec.signal.throwIfAborted()
    return { kind: 'allow' }
  })
  assert.equal(codeOf(await run()), 'ABORTED_BEFORE_DISPATCH')
  assert.deepEqual(calls, [])
})

test('a signal that a wrapper puts in does not hide that the caller gave up, nor that it is over itself', async () => {
  const live = new AbortController().signal
  const cases: readonly (readonly [giveUp: boolean, signal: AbortSignal])[] = [
    [true, live],
    [false, AbortSignal.abort()],
  ]
  for (const [giveUp, signal] of cases) {
    const { ctx, calls, controller, run } = bareTool()
    ctx.on('tools/execute', (exec, next) => {
      if (giveUp) controller.abort()
      exec.signal = signal
      return next()
    })
    assert.equal(codeOf(await run()), 'ABORTED_BEFORE_DISPATCH')
    assert.deepEqual(calls, [])
  }
})

test('an abort inside a wrapper keeps the body from running', async () => {
  const { ctx, calls, controller, run } = bareTool()
  ctx.on('tools/execute', async (_exec, next) => {
    controller.abort()
    return next()
  })
  assert.equal(codeOf(await run()), 'ABORTED_BEFORE_DISPATCH')
  assert.deepEqual(calls, [])
})

test('an abort while the result is judged turns success into abort and keeps the contexts', async () => {
  const { ctx, controller, run } = bareTool((_args, exec) => (exec.deferContext(note('kept')), 'done'))
  ctx.on('tools/post-execute', async (_exec, _result, next) => {
    controller.abort()
    return next()
  })
  const result = await run()
  assert.equal(codeOf(result), 'ABORTED')
  assert.deepEqual(contextsOf(result), ['kept'])
})

test('a wrapper that throws has the last word', async () => {
  const { ctx, calls, run } = bareTool()
  ctx.on('tools/execute', async (_exec, next) => {
    await next()
    throw new HarnessError('WRAPPED', 'wrapper broke')
  })
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  const result = await run()
  assert.equal(codeOf(result), 'WRAPPED')
  assert.deepEqual(calls, ['body'])
})

test('what a body throws reaches the wrapper as a result, which may try again', async () => {
  let attempt = 0
  const { ctx, run } = bareTool((_args, exec) => {
    exec.deferContext(note(`attempt ${++attempt}`))
    if (attempt === 1) {
      exec.concludeTurn()
      throw new Error('flaky')
    }
    return 'second time'
  })
  ctx.on('tools/execute', async (_exec, next) => {
    const first = await next()
    assert.equal(textOf(first), 'Error: flaky')
    return next()
  })
  const result = await run()
  assert.equal(textOf(result), '[second time]')
  assert.deepEqual(contextsOf(result), ['attempt 2'])
  assert.equal('concludesTurn' in result, false)
})

test('a success that a wrapper made up has to fit the declaration, and is rendered by the tool', async () => {
  const { ctx, calls, run } = bareTool()
  let made: ToolExecutionResult = {
    isError: false,
    value: 'cached',
    content: [{ type: 'text', text: 'mine' }],
  }
  ctx.on('tools/execute', async () => made)
  assert.deepEqual(await run(), {
    isError: false,
    value: 'cached',
    content: [{ type: 'text', text: '[cached]' }],
    meta: { shown: 'cached' },
  })
  made = { isError: false, value: 'cached', content: [], concludesTurn: true }
  assert.equal(concludes(await run()), true)
  made = { isError: false, value: 1, content: [], additionalContexts: [note('wrapper')] }
  const result = await run()
  assert.equal(codeOf(result), 'INVALID_TOOL_OUTPUT')
  assert.deepEqual(contextsOf(result), ['wrapper'])
  assert.deepEqual(calls, [])
  assert.equal(codeOf(await run({ name: 'nothing' })), 'UNKNOWN_TOOL')
})

test('a failure that a wrapper made up is kept as it is', async () => {
  const { ctx, run } = bareTool()
  const made: ToolExecutionResult = {
    isError: true,
    error: { message: 'late', info: { name: 'ToolTimeoutError', code: 'TOOL_TIMEOUT' } },
    content: [{ type: 'text', text: 'tool call timed out' }],
    meta: { after: 5 },
  }
  ctx.on('tools/execute', async () => made)
  assert.deepEqual(await run(), made)
})

test('of a failure that a wrapper made up, the model is shown something in any case', async () => {
  for (const made of [
    { isError: true, error: { message: 'late' }, content: [] },
    { isError: true, error: { message: 'late' } },
  ]) {
    const { ctx, run } = bareTool()
    ctx.on('tools/execute', async () => made as ToolExecutionResult)
    assert.deepEqual(await run(), {
      isError: true,
      error: { message: 'late' },
      content: [{ type: 'text', text: 'Error: late' }],
    })
  }
})

test('a wrapper that gives nothing is an error', async () => {
  const { ctx, run } = bareTool()
  ctx.on('tools/execute', (async () => undefined) as never)
  assert.equal(textOf(await run()), 'Error: a tools/execute listener gave no result')
})

test('a call never rejects, whatever it is given', async () => {
  const { ctx } = bareTool()
  const trap = new Proxy(
    {},
    {
      get: () => {
        throw new Error('trapped')
      },
      ownKeys: () => {
        throw new Error('trapped')
      },
    },
  )
  for (const input of [undefined, null, {}, trap, { name: 'work', callId: 'c', arguments: {} }]) {
    assert.equal((await ctx.tools.execute(input as never)).isError, true)
  }
})

test('a stage runs once, however often it is asked for, and none is skipped', async () => {
  const { ctx, calls, input } = bareTool()
  ctx.on('tools/pre-execute', (_exec, next) => (calls.push('pre-execute'), next()))
  const call = ctx.tools.open(input())
  await Promise.all([call.dispatch(), call.prepare(), call.dispatch()])
  assert.equal(call.bodyInvoked, true)
  assert.equal(await call.finish(), await call.finish())
  assert.deepEqual(calls, ['pre-execute', 'body'])
})

test('a call that is finished without a dispatch has not started', async () => {
  const { ctx, calls, controller, input } = bareTool()
  const idle = ctx.tools.open(input())
  await idle.prepare()
  const result = await idle.finish()
  assert.deepEqual(result.isError && result.error, {
    message: 'tool call not started',
    info: { name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' },
  })
  const aborted = ctx.tools.open(input())
  controller.abort()
  assert.equal(codeOf(await aborted.finish()), 'ABORTED_BEFORE_DISPATCH')
  assert.deepEqual(calls, [])
})

test('a listener cannot change what was called, and after the end not the signal either', async () => {
  const seen: unknown[] = []
  const { ctx, run } = bareTool(args => (seen.push(args), 'done'))
  let kept: { signal: AbortSignal } | undefined
  ctx.on('tools/pre-execute', (exec, next) => {
    for (const key of ['name', 'arguments', 'callId', 'token']) {
      assert.throws(() => Object.assign(exec, { [key]: 'other' }), TypeError)
    }
    return next()
  })
  ctx.on('tools/execute', (exec, next) => ((kept = exec), next()))
  assert.equal(textOf(await run({ arguments: { a: 1 } })), '[done]')
  assert.deepEqual(seen, [{ a: 1 }])
  assert.throws(() => Object.assign(kept ?? {}, { signal: AbortSignal.abort() }), /once its result is there/)
})

test('an abort between the stages runs no wrapper', async () => {
  const { ctx, calls, controller, input } = bareTool()
  ctx.on('tools/execute', (_exec, next) => (calls.push('execute'), next()))
  ctx.on('tools/post-execute', (_exec, _result, next) => (calls.push('post-execute'), next()))
  const call = ctx.tools.open(input())
  await call.prepare()
  controller.abort()
  await call.dispatch()
  assert.equal(codeOf(await call.finish()), 'ABORTED_BEFORE_DISPATCH')
  assert.deepEqual(calls, ['post-execute'])
})

test('a wrapper that tries twice may keep the first result, with what came along', async () => {
  let attempt = 0
  const { ctx, run } = bareTool((_args, exec) => {
    exec.deferContext(note(`attempt ${++attempt}`))
    return `result ${attempt}`
  })
  ctx.on('tools/execute', async (_exec, next) => {
    const first = await next()
    await next()
    return first
  })
  const result = await run()
  assert.deepEqual([textOf(result), contextsOf(result)], ['[result 1]', ['attempt 1']])
})

test('whatever listeners do, a call ends once, well-formed, and not against a denial', async () => {
  const pre = fc.constantFrom('next', 'deny', 'ask', 'throw', 'nothing', 'abort')
  const around = fc.constantFrom('next', 'twice', 'made', 'failed', 'throw', 'nothing', 'abort')
  const post = fc.constantFrom('next', 'content', 'value', 'both', 'block', 'throw', 'nothing', 'abort')
  const body = fc.constantFrom('value', 'throw', 'invalid', 'abort', 'conclude')
  await fc.assert(
    fc.asyncProperty(pre, around, post, body, fc.boolean(), async (before, wrap, after, inner, guarded) => {
      const { ctx, calls, controller, run } = bareTool((_args, exec) => {
        exec.deferContext(note('deferred'))
        if (inner === 'throw') throw new Error('body')
        if (inner === 'abort') controller.abort()
        if (inner === 'conclude') exec.concludeTurn()
        return inner === 'invalid' ? 1 : 'done'
      })
      const act = (kind: string, results: Record<string, unknown>, next: () => Promise<unknown>): unknown => {
        if (kind === 'throw') throw new Error('listener')
        if (kind === 'abort') controller.abort()
        if (kind === 'twice') return next().then(() => next())
        return kind in results ? results[kind] : next()
      }
      const made = { isError: false, value: 'made', content: [] }
      const failed = { isError: true, error: { message: 'made' }, content: [] }
      ctx.on('tools/pre-execute', (async (_exec: unknown, next: () => Promise<unknown>) =>
        act(
          before,
          { deny: { kind: 'deny', reason: 'no' }, ask: { kind: 'ask' }, nothing: undefined },
          next,
        )) as never)
      if (guarded) ctx.tools.guard(() => 'guarded')
      ctx.on('tools/execute', (async (_exec: unknown, next: () => Promise<unknown>) =>
        act(wrap, { made, failed, nothing: undefined }, next)) as never)
      const content = [{ type: 'text', text: 'replaced' }]
      ctx.on('tools/post-execute', (async (_exec: unknown, _result: unknown, next: () => Promise<unknown>) =>
        act(
          after,
          {
            content: { kind: 'accept', content },
            value: { kind: 'accept', value: 'replaced' },
            both: { kind: 'accept', content, value: 'replaced' },
            block: { kind: 'block', feedback: 'no' },
            nothing: undefined,
          },
          next,
        )) as never)
      const told: ToolExecutionResult[] = []
      ctx.on('tools/result', (_exec, result) => void told.push(result))
      const result = await run()
      assert.deepEqual(told, [result])
      assert.ok(Object.isFrozen(result) && result.content.length > 0)
      assert.equal('value' in result, !result.isError)
      assert.ok(!result.isError || !('concludesTurn' in result))
      assert.notEqual(result.additionalContexts?.length, 0)
      const isRefused = guarded || !['next'].includes(before)
      if (isRefused) assert.deepEqual(calls, [])
      if (isRefused) assert.equal(result.isError, true)
      if (controller.signal.aborted) assert.equal(result.isError, true)
      await ctx.dispose()
    }),
    { numRuns: 300 },
  )
})
