import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context } from './index.ts'

function setup() {
  const ctx = new Context()
  const log: string[] = []
  const undo = (name: string) => () => void log.push(name)
  const later = (name: string) => async () => {
    await new Promise(setImmediate)
    log.push(name)
  }
  return { ctx, log, undo, later }
}

test('a synchronous effect is undone at once, and once', () => {
  const { ctx, log, undo } = setup()
  const dispose = ctx.effect(() => undo('a'))
  dispose()
  dispose()
  assert.deepEqual(log, ['a'])
})

test('yielded disposers run in reverse, each awaited before the next', async () => {
  const { ctx, log, undo, later } = setup()
  const dispose = ctx.effect(function* () {
    yield undo('a')
    yield later('b')
    yield undo('c')
  })
  await dispose()
  assert.deepEqual(log, ['c', 'b', 'a'])
})

test('a throw in a generator undoes what was yielded before it goes on', () => {
  const { ctx, log, undo } = setup()
  assert.throws(
    () =>
      ctx.effect(function* () {
        yield undo('a')
        yield undo('b')
        throw new Error('third step')
      }),
    /third step/,
  )
  assert.deepEqual(log, ['b', 'a'])
  assert.deepEqual(ctx.inspect().effects, [])
})

test('an effect whose disposer is yielded ends at its place in the outer one', async () => {
  const { ctx, log, undo } = setup()
  const fiber = ctx.plugin(own => {
    const inner = own.effect(() => undo('inner'), 'inner')
    own.effect(function* () {
      yield undo('before')
      yield inner
      yield undo('after')
    }, 'outer')
    own.effect(() => undo('last'), 'last')
    assert.deepEqual(own.inspect().effects, ['outer', 'last'])
  })
  await fiber.dispose()
  assert.deepEqual(log, ['last', 'after', 'inner', 'before'])
})

test('an asynchronous set-up is awaited before it is undone', async () => {
  const { ctx, log, undo } = setup()
  const { promise, resolve } = Promise.withResolvers<void>()
  const dispose = ctx.effect(async () => {
    await promise
    log.push('set up')
    return undo('undone')
  })
  const ended = dispose()
  resolve()
  await ended
  assert.deepEqual(log, ['set up', 'undone'])
})

test('an asynchronous set-up that fails is reported and undone', async () => {
  const { ctx, log, undo } = setup()
  const errors: string[] = []
  ctx.on(
    'internal/error',
    (error, _fiber, where) => void errors.push(`${where}: ${(error as Error).message}`),
  )
  const dispose = ctx.effect(async function* () {
    yield undo('a')
    throw new Error('later')
  }, 'late')
  await new Promise(setImmediate)
  await dispose()
  assert.deepEqual(log, ['a'])
  assert.deepEqual(errors, ['late: later'])
})

test('all disposers run though some fail, and the errors come joined', async () => {
  const { ctx, log, undo } = setup()
  const dispose = ctx.effect(function* () {
    yield undo('a')
    yield () => {
      throw new Error('b')
    }
    yield async () => {
      throw new Error('c')
    }
  })
  await assert.rejects(
    async () => dispose(),
    (error: AggregateError) => {
      assert.deepEqual(
        error.errors.map((each: Error) => each.message),
        ['c', 'b'],
      )
      return true
    },
  )
  assert.deepEqual(log, ['a'])
})

test('a plugin that ends waits for an effect that is being undone already', async () => {
  const { ctx, log } = setup()
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  let dispose = (): Promise<void> => Promise.resolve()
  const fiber = ctx.plugin(own => {
    dispose = own.effect(() => async () => {
      await opened
      log.push('undone')
    })
  })
  const early = dispose()
  assert.deepEqual(fiber.inspect().effects, ['effect'])
  const end = fiber.dispose().then(() => log.push('disposed'))
  await new Promise(setImmediate)
  assert.deepEqual(log, [])
  open()
  await Promise.all([early, end])
  assert.deepEqual(log, ['undone', 'disposed'])
  assert.deepEqual(fiber.inspect().effects, [])
})

test('an effect whose undoing ends its own plugin does not wait for itself', async () => {
  const { ctx, log } = setup()
  let dispose = (): Promise<void> => Promise.resolve()
  const fiber = ctx.plugin(own => {
    dispose = own.effect(() => async () => {
      await new Promise(setImmediate)
      await own.dispose()
      log.push('undone')
    })
  })
  await dispose()
  await fiber.dispose()
  assert.deepEqual(log, ['undone'])
  assert.equal(fiber.state, 'disposed')
})

test('a set-up that fails behind asynchronous steps is rolled back before its plugin is gone', async () => {
  const { ctx, log, undo, later } = setup()
  const fiber = ctx.plugin(own => {
    assert.throws(
      () =>
        own.effect(function* () {
          yield undo('first')
          yield later('second')
          throw new Error('third step')
        }),
      /third step/,
    )
  })
  await fiber.dispose()
  assert.deepEqual(log, ['second', 'first'])
})
