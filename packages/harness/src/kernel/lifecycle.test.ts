import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { Context } from './index.ts'
import type { Fiber } from './index.ts'

function setup() {
  const ctx = new Context()
  const errors: string[] = []
  ctx.on('internal/error', (error, fiber, where) => {
    errors.push(`${fiber.name} ${where}: ${(error as Error).message}`)
  })
  return { ctx, errors }
}

test('an effect that goes on while its plugin ends leaves no child, listener, timer or service', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { ctx, errors } = setup()
  const gate = Promise.withResolvers<void>()
  const heard: string[] = []
  const undone: string[] = []
  const attempts: ((own: Context) => unknown)[] = [
    own => own.plugin({ name: 'child', apply: () => void heard.push('child') }),
    own => own.on('internal/fiber', () => void heard.push('event')),
    own => own.setTimeout(() => heard.push('timer'), 1),
    own => own.provide('late' as never, {} as never),
    own => own.effect(() => () => undone.push('inner')),
  ]
  const fiber = ctx.plugin({
    name: 'late',
    apply(own) {
      for (const [index, attempt] of attempts.entries()) {
        own.effect(async () => {
          await gate.promise
          attempt(own)
          return () => void undone.push('outer')
        }, `late ${index}`)
      }
    },
  })
  const ended = fiber.dispose()
  assert.equal(fiber.state, 'unloading')
  gate.resolve()
  await ended
  assert.equal(fiber.state, 'disposed')
  t.mock.timers.tick(1000)
  ctx.plugin({ name: 'other', apply: () => {} })
  assert.deepEqual([heard, undone], [[], []])
  assert.deepEqual(
    ctx.inspect().children.map(({ name }) => name),
    ['other'],
  )
  assert.equal(ctx.get('late' as never), undefined)
  assert.equal(errors.length, attempts.length)
  for (const line of errors) assert.match(line, /^late late \d: cannot .*: plugin "late" is unloading$/)
})

test('an effect that fails while it is being ended is undone once, and its end comes', async () => {
  const { ctx, errors } = setup()
  const gate = Promise.withResolvers<void>()
  const log: string[] = []
  const end = ctx.effect(async function* () {
    yield () => void log.push('first undone')
    await gate.promise
    yield () => void log.push('second undone')
    throw new Error('too late')
  }, 'steps')
  const ended = Promise.all([end(), end()])
  gate.resolve()
  await ended
  assert.deepEqual(log, ['second undone', 'first undone'])
  assert.deepEqual(errors, ['root steps: too late'])
})

test('a plugin restarted while it loads is loaded once more, and awaiting that means loaded', async () => {
  const { ctx } = setup()
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const log: string[] = []
  let loads = 0
  const fiber = ctx.plugin({
    name: 'slow',
    apply: async own => {
      const load = loads++
      log.push(`up ${load}`)
      own.effect(() => () => void log.push(`down ${load}`))
      await gates[load]?.promise
    },
  })
  const restarted = fiber.restart().then(() => log.push('restarted'))
  gates[0]?.resolve()
  await nextTask()
  assert.deepEqual(log, ['up 0', 'down 0', 'up 1'])
  gates[1]?.resolve()
  await restarted
  assert.deepEqual(log, ['up 0', 'down 0', 'up 1', 'restarted'])
})

test('an update back to the first config while the second is applied ends with the first', async () => {
  const { ctx } = setup()
  const gate = Promise.withResolvers<void>()
  const applied: number[] = []
  const plugin = async (_own: Context, value: number): Promise<void> => {
    applied.push(value)
    if (applied.length === 2) await gate.promise
  }
  const fiber = ctx.plugin(plugin, 1)
  await fiber
  const there = fiber.update(2)
  await nextTask()
  const back = fiber.update(1)
  gate.resolve()
  await Promise.all([there, back])
  assert.deepEqual(applied, [1, 2, 1])
  assert.equal(fiber.config, 1)
})

test('a timer whose callback rejects is told of in the name of its plugin, and the next tick comes', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { ctx, errors } = setup()
  let ticks = 0
  ctx.plugin({
    name: 'ticker',
    apply(own) {
      own.setInterval(async () => {
        ticks++
        throw new Error(`tick ${ticks}`)
      }, 10)
    },
  })
  t.mock.timers.tick(20)
  await nextTask()
  assert.equal(ticks, 2)
  assert.deepEqual(errors, ['ticker timer: tick 1', 'ticker timer: tick 2'])
})

test('a plugin that is disposed by an effect of its own set-up ends, and what was made before is undone', async () => {
  const { ctx } = setup()
  const log: string[] = []
  const fiber: Fiber = ctx.plugin(own => {
    own.effect(() => () => void log.push('first undone'))
    own.effect(() => {
      void own.dispose()
      log.push('set-up goes on')
      return () => void log.push('second undone')
    })
  })
  await fiber.dispose()
  assert.deepEqual(log, ['set-up goes on', 'second undone', 'first undone'])
  assert.equal(fiber.state, 'disposed')
})

test('a provider that comes and goes while a dependent loads leaves the dependent waiting, not half loaded', async () => {
  const { ctx, errors } = setup()
  const gate = Promise.withResolvers<void>()
  const log: string[] = []
  const provider = ctx.plugin({
    name: 'provider',
    apply: own => void own.provide('late' as never, {} as never),
  })
  const user = ctx.plugin(
    {
      name: 'user',
      inject: ['late'],
      apply: async own => {
        own.effect(() => () => void log.push('undone'))
        await gate.promise
        log.push('loaded')
      },
    },
    undefined,
    { wait: true },
  )
  const gone = provider.dispose()
  gate.resolve()
  await gone
  assert.equal(user.state, 'pending')
  assert.deepEqual(log, ['loaded', 'undone'])
  assert.deepEqual(errors, [])
})

test('a timer that is still open ends with its plugin', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { ctx } = setup()
  let calls = 0
  const fiber = ctx.plugin(own => void own.setTimeout(() => calls++, 10))
  t.mock.timers.tick(5)
  await fiber.dispose()
  t.mock.timers.tick(100)
  assert.equal(calls, 0)
})

test('a service that a running plugin provides later starts those who wait for it, and its end unloads them', () => {
  const { ctx } = setup()
  const log: string[] = []
  ctx.plugin({
    name: 'user',
    inject: ['late'],
    apply: () => {
      log.push('up')
      return () => void log.push('down')
    },
  })
  let own: Context | undefined
  ctx.plugin(inner => void (own = inner))
  const withdraw = own?.provide('late' as never, {} as never)
  assert.deepEqual(log, ['up'])
  withdraw?.()
  assert.deepEqual(log, ['up', 'down'])
})
