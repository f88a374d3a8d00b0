import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId } from '@dsh/protocol'
import { Context } from '../../kernel/index.ts'
import { defineTool, ToolRuntime } from './index.ts'
import type {
  Approval,
  ApprovalOutcome,
  ApprovalRequest,
  ToolExecutionInput,
  ToolExecutionResult,
} from './index.ts'

function setup(answer?: Approval['request']) {
  const ctx = new Context()
  void ctx.plugin(ToolRuntime)
  let ran = 0
  const asked: ApprovalRequest[] = []
  ctx.tools.register(
    defineTool({ name: 'rm', description: '', parameters: {}, execute: () => (ran++, 'removed') }),
  )
  ctx.on('tools/pre-execute', async () => ({ kind: 'ask', reason: 'removes files' }))
  if (answer !== undefined) {
    ctx.provide('approval', {
      request: (request: ApprovalRequest) => (asked.push(request), answer(request)),
    } as Approval)
  }
  const controller = new AbortController()
  const run = (agent: object | undefined): Promise<ToolExecutionResult> =>
    ctx.tools.execute({
      callId: CallId('c1'),
      name: 'rm',
      arguments: { path: '/' },
      signal: controller.signal,
      ...(agent === undefined ? {} : { agent }),
    } as ToolExecutionInput)
  return { ctx, asked, controller, run, ran: () => ran }
}

const agent = {}
const answering = (outcome: string, reason?: string) => async () => ({
  outcome: outcome as ApprovalOutcome,
  ...(reason === undefined ? {} : { reason }),
})

test('a call that is allowed once runs', async () => {
  const { asked, controller, run, ran } = setup(answering('allowed-once'))
  assert.equal((await run(agent)).isError, false)
  assert.equal(ran(), 1)
  assert.equal(typeof asked[0]?.token, 'symbol')
  assert.deepEqual(asked, [
    {
      token: asked[0]?.token,
      toolName: 'rm',
      callId: 'c1',
      arguments: { path: '/' },
      reason: 'removes files',
      signal: controller.signal,
      agent,
    },
  ])
})

test('each way of not being allowed has a text of its own, and the body does not run', async () => {
  const denial = async (
    answer: Approval['request'] | undefined,
    owner: object | undefined = agent,
  ): Promise<unknown> => {
    const { run, ran } = setup(answer)
    const result = await run(owner)
    assert.equal(ran(), 0)
    return result.isError && result.error
  }
  assert.deepEqual(await denial(answering('rejected')), { message: 'the user rejected this call' })
  assert.deepEqual(await denial(answering('rejected', 'use `trash` instead')), {
    message: 'the user rejected this call: use `trash` instead',
  })
  assert.deepEqual(await denial(answering('cancelled')), {
    message: 'the approval of this call was cancelled',
  })
  const unavailable = 'this call needs an approval, but nobody is there to give it'
  assert.deepEqual(await denial(answering('unavailable')), { message: unavailable })
  assert.deepEqual(await denial(answering('something else')), { message: unavailable })
  assert.deepEqual(
    await denial(async () => {
      throw new Error('no open turn')
    }),
    { message: `${unavailable}: no open turn` },
  )
  assert.deepEqual(await denial(undefined), {
    message: 'this call needs an approval, but no approval service is loaded',
  })
  const { run, ran } = setup(answering('allowed-once'))
  const result = await run(undefined)
  assert.deepEqual(result.isError && result.error, {
    message: 'this call needs an approval, but belongs to no agent that could ask for it',
  })
  assert.equal(ran(), 0)
})

test('an abort while a person is asked ends the call, whatever the answer', async () => {
  for (const late of ['allowed-once', 'cancelled', 'throw']) {
    const { controller, run, ran } = setup(async () => {
      controller.abort()
      if (late === 'throw') throw new Error('late')
      return { outcome: late as ApprovalOutcome }
    })
    const result = await run(agent)
    assert.equal(result.isError && result.error.info?.code, 'ABORTED_BEFORE_DISPATCH')
    assert.equal(ran(), 0)
  }
})

test('a guard refuses what a person allowed', async () => {
  const { ctx, run, ran } = setup(answering('allowed-once'))
  ctx.tools.guard(() => 'plan mode')
  const result = await run(agent)
  assert.equal(result.isError && result.error.message, 'plan mode')
  assert.equal(ran(), 0)
})

test('two calls that are asked for at once get each their own answer, in any order', async () => {
  const answers: ((outcome: ApprovalOutcome) => void)[] = []
  const { asked, run, ran } = setup(
    () => new Promise(resolve => answers.push(outcome => resolve({ outcome }))),
  )
  const running = [run(agent), run(agent)]
  await new Promise(setImmediate)
  assert.equal(asked.length, 2)
  answers[1]?.('allowed-once')
  answers[0]?.('rejected')
  assert.deepEqual(
    (await Promise.all(running)).map(result => result.isError),
    [true, false],
  )
  assert.equal(ran(), 1)
})

test('what a person is shown is the very thing that runs', async () => {
  const { ctx, asked, run } = setup(answering('allowed-once'))
  let executed: unknown
  ctx.on('tools/execute', (exec, next) => ((executed = exec.arguments), next()))
  await run(agent)
  assert.equal(asked[0]?.arguments, executed)
  assert.ok(Object.isFrozen(executed))
})
