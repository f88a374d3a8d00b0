import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import { defineTool } from '../../core/tools/index.ts'
import type { ToolDefinition, ToolRunContext } from '../../core/tools/index.ts'
import { bareTool, codeOf, textOf } from '../../testing/bare-tool.ts'
import type { Body } from '../../testing/bare-tool.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { text, toolCall } from '../llm-scripted/index.ts'
import { timeoutPolicy } from './index.ts'

function setup(t: TestContext, body: Body, more: Partial<ToolDefinition> = { timeoutMs: 50 }) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const tool = bareTool(body, more)
  const failures: string[] = []
  tool.ctx.on('internal/error', error => void failures.push((error as Error).message))
  const plugin = tool.ctx.plugin(timeoutPolicy, { graceMs: 20 })
  return { ...tool, plugin, failures }
}

/** Ends as soon as it is told to. */
const obedient: Body = (_args, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
const deaf: Body = () => new Promise(() => {})
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

test('a tool that says no time takes as long as it takes', async t => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { run } = setup(t, () => promise, {})
  const call = run()
  await settle()
  mock.timers.tick(1_000_000)
  resolve('late')
  assert.equal(textOf(await call), '[late]')
})

test('a call that ends in time is not touched, and leaves no timer behind', async t => {
  const { run, ctx, failures } = setup(t, () => 'quick')
  const seen: AbortSignal[] = []
  ctx.on('tools/post-execute', (exec, _result, next) => {
    seen.push(exec.signal)
    return next()
  })
  assert.equal(textOf(await run()), '[quick]')
  mock.timers.tick(1000)
  assert.deepEqual([seen[0]?.aborted, failures], [false, []])
})

test('a call over its time is told to end, and says how long it had', async t => {
  const { run, failures } = setup(t, obedient)
  const call = run()
  await settle()
  mock.timers.tick(50)
  const result = await call
  assert.equal(textOf(result), 'Error: tool call timed out after 50ms')
  assert.equal(codeOf(result), 'TOOL_TIMEOUT')
  assert.deepEqual(failures, [])
})

test('what a body gives after its time counts no more', async t => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { run } = setup(t, () => promise)
  const call = run()
  await settle()
  mock.timers.tick(50)
  resolve('late')
  assert.equal(codeOf(await call), 'TOOL_TIMEOUT')
})

test('a caller that gave up first is what the call failed of', async t => {
  const { run, controller } = setup(t, obedient)
  const call = run()
  await settle()
  controller.abort(new Error('enough'))
  mock.timers.tick(50)
  assert.equal(codeOf(await call), 'ABORTED')
})

test('a caller that gives up after the deadline changes nothing', async t => {
  const { promise, reject } = Promise.withResolvers<string>()
  const { run, controller } = setup(t, () => promise)
  const call = run()
  await settle()
  mock.timers.tick(50)
  controller.abort(new Error('enough'))
  reject(new Error('stopped'))
  assert.equal(codeOf(await call), 'TOOL_TIMEOUT')
})

test('the signal of the caller is back when policies see the result', async t => {
  const { run, ctx, controller } = setup(t, obedient)
  let isOwn = false
  ctx.on('tools/post-execute', (exec, _result, next) => {
    isOwn = exec.signal === controller.signal
    return next()
  })
  const call = run()
  await settle()
  mock.timers.tick(50)
  await call
  assert.ok(isOwn)
})

test('a body that hears of no deadline is left behind after a grace, and reported', async t => {
  const { run, failures } = setup(t, deaf)
  const call = run()
  await settle()
  mock.timers.tick(50)
  await settle()
  assert.deepEqual(failures, [])
  mock.timers.tick(20)
  const result = await call
  assert.equal(
    textOf(result),
    'Error: tool call timed out after 50ms and did not stop; it may still be at work',
  )
  assert.deepEqual(failures, ['tool "work" did not stop within 20 ms and was left behind, still running'])
})

test('a body that hears of no cancel is left behind too, also without a time of its own', async t => {
  const { run, failures, controller } = setup(t, deaf, {})
  const call = run()
  await settle()
  controller.abort(new Error('enough'))
  mock.timers.tick(20)
  const result = await call
  assert.equal(codeOf(result), 'ABORTED')
  assert.equal(textOf(result), 'Error: tool call aborted and did not stop; it may still be at work')
  assert.equal(failures.length, 1)
})

test('what a body that was left behind does later reaches nobody', async t => {
  const { promise, reject } = Promise.withResolvers<string>()
  let late: ToolRunContext | undefined
  const { run, failures, controller } = setup(t, (_args, exec) => {
    late = exec
    return promise
  })
  const call = run()
  await settle()
  controller.abort(new Error('enough'))
  mock.timers.tick(20)
  const result = await call
  reject(new Error('nobody waits for this'))
  late?.concludeTurn()
  await settle()
  assert.equal(result.isError, true)
  assert.equal(failures.length, 1)
})

test('a turn whose tool cannot be stopped ends all the same', async t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const { ctx, agent: create } = await createHarness([toolCall('work', {}), text('never')])
  await ctx.plugin(timeoutPolicy, { graceMs: 20 })
  const started = Promise.withResolvers<void>()
  ctx.tools.register(
    defineTool({
      name: 'work',
      description: 'Works',
      parameters: {},
      execute: () => {
        started.resolve()
        return new Promise<string>(() => {})
      },
    }),
  )
  const agent = create()
  agent.followup(say('go'))
  await started.promise
  agent.cancel({ kind: 'user' })
  mock.timers.tick(20)
  await agent.whenIdle()
  assert.match(outline(agent.session.events), /tc tr se te:aborted\{user\}$/)
})

test('without the plugin nothing times out', async t => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { run, plugin } = setup(t, () => promise)
  await plugin.dispose()
  const call = run()
  await settle()
  mock.timers.tick(1000)
  resolve('late')
  assert.equal(textOf(await call), '[late]')
})
