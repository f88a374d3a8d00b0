import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context, Service } from './index.ts'
import type { Fiber, FiberState } from './index.ts'

declare module './index.ts' {
  interface Services {
    store: Store
    clock: { readonly now: number }
  }
}

class Store extends Service {
  static readonly inject = [] as const
  private readonly owners = new Map<string, string>()

  constructor(ctx: Context) {
    super(ctx, 'store')
  }

  put(key: string): void {
    const owner = this.ctx.fiber.name
    this.ctx.effect(() => {
      this.owners.set(key, owner)
      return () => void this.owners.delete(key)
    }, `put ${key}`)
  }

  list(): string[] {
    return [...this.owners].map(([key, owner]) => `${key} of ${owner}`)
  }
}

function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

function clock(now: number): (ctx: Context) => void {
  return ctx => void ctx.provide('clock', { now })
}

test('a synchronous plugin is active and its service readable at once', () => {
  const ctx = new Context()
  const fiber = ctx.plugin(Store)
  assert.equal(fiber.state, 'active')
  assert.deepEqual(ctx.store.list(), [])
})

test('what a plugin registers through a service belongs to the plugin that called', async () => {
  const ctx = new Context()
  ctx.plugin(Store)
  const user = ctx.plugin({ name: 'user', inject: ['store'], apply: own => own.store.put('a') })
  ctx.store.put('b')
  assert.deepEqual(ctx.store.list(), ['a of user', 'b of root'])
  await user.dispose()
  assert.deepEqual(ctx.store.list(), ['b of root'])
})

test('assigning to a field of a service through a view throws instead of changing the view alone', () => {
  const ctx = new Context()
  ctx.plugin(Store)
  assert.throws(() => Object.assign(ctx.store, { extra: 1 }), TypeError)
})

test('a plugin starts when the last of its services is there', () => {
  const ctx = new Context()
  const heard: number[] = []
  const user = ctx.plugin({ name: 'user', inject: ['clock'], apply: own => void heard.push(own.clock.now) })
  assert.equal(user.state, 'pending')
  ctx.plugin(clock(1))
  assert.equal(user.state, 'active')
  assert.deepEqual(heard, [1])
})

test('a replaced provider unloads and reloads each dependent exactly once', async () => {
  const ctx = new Context()
  const log: string[] = []
  const first = ctx.plugin(clock(1))
  ctx.plugin({
    name: 'user',
    inject: ['clock'],
    apply: own => {
      log.push(`up ${own.clock.now}`)
      return () => void log.push(`down ${own.clock.now}`)
    },
  })
  await first.dispose()
  ctx.plugin(clock(2))
  assert.deepEqual(log, ['up 1', 'down 1', 'up 2'])
})

test('a plugin restarts when an optional service comes and when it goes', async () => {
  const ctx = new Context()
  const seen: (number | undefined)[] = []
  ctx.plugin({
    name: 'user',
    inject: { optional: ['clock'] },
    apply: own => void seen.push(own.get('clock')?.now),
  })
  await ctx.plugin(clock(5)).dispose()
  assert.deepEqual(seen, [undefined, 5, undefined])
})

test('awaiting a plugin that waits rejects with the missing service and the nearest one', async () => {
  const ctx = new Context()
  ctx.plugin(clock(1))
  const waiting = ctx.plugin({ name: 'user', inject: ['clok'], apply: () => {} })
  await assert.rejects(async () => waiting, {
    code: 'MISSING_SERVICE',
    message: 'plugin "user" waits for "clok"; did you mean "clock"?',
  })
  assert.deepEqual(waiting.inspect().waitsFor, ['clok'])
})

test('awaiting a plugin waits for a provider that is just loading', async () => {
  const ctx = new Context()
  const { opened, open } = gate()
  const waiting = ctx.plugin({ name: 'user', inject: ['clock'], apply: () => {} })
  ctx.plugin(async own => {
    await opened
    own.provide('clock', { now: 1 })
  })
  setImmediate(open)
  await waiting
  assert.equal(waiting.state, 'active')
})

test('a plugin asked to wait resolves when its service comes', async () => {
  const ctx = new Context()
  const waiting = ctx.plugin({ name: 'user', inject: ['clock'], apply: () => {} }, undefined, { wait: true })
  setImmediate(() => void ctx.plugin(clock(1)))
  await waiting
  assert.equal(waiting.state, 'active')
})

test('a service of another realm is not seen, and one realm label is shared', () => {
  const ctx = new Context()
  const left = ctx.isolate('clock', 'shared')
  const right = ctx.isolate('clock', 'shared')
  left.plugin(clock(7))
  assert.equal(right.clock.now, 7)
  assert.equal(ctx.get('clock'), undefined)
  assert.equal(ctx.isolate('clock').get('clock'), undefined)
})

test('a second provider in one realm is refused and names both', async () => {
  const ctx = new Context()
  ctx.plugin({ name: 'first', apply: clock(1) })
  const second = ctx.plugin({ name: 'second', apply: clock(2) })
  await assert.rejects(async () => second, {
    code: 'DUPLICATE_SERVICE',
    message: 'service "clock" of "second" is already provided by "first"',
  })
  assert.equal(ctx.clock.now, 1)
})

test('reading a service that is not there says so', () => {
  const ctx = new Context()
  ctx.plugin(clock(1)).dispose().catch(assert.fail)
  assert.throws(() => ctx.clock, { code: 'MISSING_SERVICE', message: 'service "clock" is not provided' })
})

test('intercepted configs merge from the root to the reader', () => {
  const ctx = new Context().intercept('clock', { zone: 'UTC', speed: 1 }).intercept('clock', { speed: 2 })
  assert.deepEqual({ ...ctx.intercepted('clock') }, { zone: 'UTC', speed: 2 })
})

test('a config update during set-up is applied after it, and awaiting it means applied', async () => {
  const ctx = new Context()
  const { opened, open } = gate()
  const applied: number[] = []
  const slow = async (_own: Context, config: { readonly value: number }): Promise<void> => {
    applied.push(config.value)
    if (config.value === 1) await opened
  }
  const fiber = ctx.plugin(slow, { value: 1 })
  const updated = fiber.update({ value: 2 })
  open()
  await updated
  assert.deepEqual(applied, [1, 2])
  assert.equal(fiber.state, 'active')
})

test('of several quick updates the last one is applied at the end, once', async () => {
  const ctx = new Context()
  const applied: string[] = []
  const plugin = async (_own: Context, config: string): Promise<void> => void applied.push(config)
  const fiber = ctx.plugin(plugin, 'bar')
  await Promise.all([fiber.update('baz'), fiber.update('qux'), fiber.update('end')])
  assert.deepEqual(applied, ['bar', 'end'])
})

test('a listener of internal/update is called once per update, however often the plugin reloads', async () => {
  const ctx = new Context()
  let calls = 0
  const plugin = (own: Context, _config: number): void => void own.on('internal/update', () => void calls++)
  const fiber = ctx.plugin(plugin, 0)
  for (const config of [1, 2, 3]) await fiber.update(config)
  assert.equal(calls, 3)
})

test('a listener of internal/update that throws refuses the config', async () => {
  const ctx = new Context()
  const fiber = ctx.plugin((_own: Context, _config: number): void => {}, 1)
  ctx.on('internal/update', () => {
    throw new Error('no')
  })
  assert.throws(() => fiber.update(2), /no/)
  assert.equal(fiber.config, 1)
})

test('an invalid config fails the plugin with the path, and a valid one brings it back', async () => {
  const ctx = new Context()
  const seen: unknown[] = []
  const Config = {
    '~standard': {
      validate: (value: unknown) =>
        typeof value === 'number'
          ? { value: value * 2 }
          : { issues: [{ message: 'not a number', path: ['ttl'] }] },
    },
  }
  const fiber = ctx.plugin(
    { name: 'timer', Config, apply: (_own: Context, config: unknown) => void seen.push(config) },
    'x',
  )
  await assert.rejects(async () => fiber, {
    code: 'INVALID_CONFIG',
    message: 'config of plugin "timer" is not valid: ttl: not a number',
  })
  await fiber.update(21)
  assert.deepEqual(seen, [42])
})

test('a failed set-up undoes what it did, keeps its error, and restarts on demand', async () => {
  const ctx = new Context()
  ctx.plugin(Store)
  let broken = true
  const fiber = ctx.plugin({
    name: 'user',
    inject: ['store'],
    apply: own => {
      own.store.put('a')
      if (broken) throw new Error('set-up failed')
    },
  })
  await assert.rejects(async () => fiber, /set-up failed/)
  assert.equal(fiber.state, 'failed')
  assert.deepEqual(ctx.store.list(), [])
  broken = false
  await fiber.restart()
  assert.deepEqual(ctx.store.list(), ['a of user'])
})

test('five effects end once each in reverse though two fail, and all callers share the end', async () => {
  const ctx = new Context()
  const log: number[] = []
  const fiber = ctx.plugin(own => {
    own.effect(() => () => void log.push(1))
    own.effect(() => () => {
      log.push(2)
      throw new Error('second')
    })
    own.effect(() => async () => void log.push(3))
    own.effect(() => async () => {
      log.push(4)
      throw new Error('fourth')
    })
    own.effect(() => () => void log.push(5))
  })
  const ends = await Promise.allSettled([fiber.dispose(), fiber.dispose(), fiber.dispose()])
  assert.deepEqual(log, [5, 4, 3, 2, 1])
  for (const end of ends) {
    assert.equal(end.status, 'rejected')
    const errors = (end as PromiseRejectedResult).reason as AggregateError
    assert.deepEqual(
      errors.errors.map((error: Error) => error.message),
      ['fourth', 'second'],
    )
  }
})

test('disposal of a parent waits for each child in turn, last first', async () => {
  const ctx = new Context()
  const log: string[] = []
  const child = (name: string) => (own: Context) =>
    void own.effect(() => async () => {
      log.push(`${name} begins`)
      await new Promise(setImmediate)
      log.push(`${name} ends`)
    })
  const parent = ctx.plugin(own => {
    own.plugin(child('a'))
    own.plugin(child('b'))
  })
  await parent.dispose()
  assert.deepEqual(log, ['b begins', 'b ends', 'a begins', 'a ends'])
})

test('dependents end before the service they stand on, and may still use it', async () => {
  const ctx = new Context()
  const log: string[] = []
  const provider = ctx.plugin(own => {
    own.provide('clock', { now: 3 })
    return () => void log.push('provider down')
  })
  ctx.plugin({
    name: 'user',
    inject: ['clock'],
    apply: own => async () => {
      await new Promise(setImmediate)
      log.push(`user down at ${own.clock.now}`)
    },
  })
  await provider.dispose()
  assert.deepEqual(log, ['user down at 3', 'provider down'])
})

test('disposing from inside the own set-up does not deadlock', async () => {
  const ctx = new Context()
  const log: string[] = []
  const fiber = ctx.plugin(async own => {
    own.effect(() => () => void log.push('undone'))
    await own.dispose()
    log.push('set-up goes on')
  })
  await fiber.dispose()
  assert.deepEqual(log, ['set-up goes on', 'undone'])
  assert.equal(fiber.state, 'disposed')
})

test('a disposer that disposes or restarts its own plugin does not deadlock or run twice', async () => {
  const ctx = new Context()
  let undone = 0
  const fiber: Fiber = ctx.plugin(own => {
    own.effect(() => async () => {
      undone++
      await own.dispose()
      await own.fiber.restart()
    })
  })
  await fiber.dispose()
  assert.equal(undone, 1)
  assert.equal(fiber.state, 'disposed')
})

test('a child whose set-up disposes the parent does not deadlock', async () => {
  const ctx = new Context()
  const parent = ctx.plugin(own => void own.plugin(async () => own.dispose()))
  await parent.dispose()
  assert.equal(parent.state, 'disposed')
})

test('set-up that runs past disposal may not leave anything behind', async () => {
  const ctx = new Context()
  ctx.plugin(Store)
  const { opened, open } = gate()
  const refused: unknown[] = []
  const late = gate()
  const fiber = ctx.plugin({
    name: 'late',
    inject: ['store'],
    apply: own => {
      void opened.then(() => {
        const attempts = [
          () => own.plugin(() => {}),
          () => own.on('internal/fiber', () => {}),
          () => own.setTimeout(() => {}, 1),
          () => own.store.put('late'),
        ]
        for (const attempt of attempts) {
          try {
            attempt()
          } catch (error) {
            refused.push((error as { code?: unknown }).code)
          }
        }
        late.open()
      })
    },
  })
  await fiber.dispose()
  open()
  await late.opened
  assert.deepEqual(
    refused,
    Array.from({ length: 4 }, () => 'INACTIVE_EFFECT'),
  )
  assert.deepEqual(ctx.store.list(), [])
})

test('a set-up that failed may not add anything while it is rolled back', async () => {
  const ctx = new Context()
  const rollBack = gate()
  const refused = gate()
  let heard = 0
  const fiber = ctx.plugin(own => {
    own.effect(() => async () => rollBack.opened)
    void Promise.resolve().then(() => {
      assert.throws(() => own.on('internal/fiber', () => void heard++), { code: 'INACTIVE_EFFECT' })
      refused.open()
    })
    throw new Error('no')
  })
  await refused.opened
  rollBack.open()
  await assert.rejects(async () => fiber, { message: 'no' })
  ctx.plugin(() => {})
  assert.equal(fiber.state, 'failed')
  assert.deepEqual(fiber.inspect().effects, [])
  assert.equal(heard, 0)
})

test('unloading during set-up waits for it and undoes everything', async () => {
  const ctx = new Context()
  ctx.plugin(Store)
  const { opened, open } = gate()
  const fiber = ctx.plugin({
    name: 'slow',
    inject: ['store'],
    apply: async own => {
      await opened
      own.store.put('a')
    },
  })
  const ended = fiber.dispose()
  open()
  await ended
  assert.deepEqual(ctx.store.list(), [])
})

test('pending and failed plugins reach the disposed state with one notice', async () => {
  const ctx = new Context()
  const seen: [string, FiberState][] = []
  const pending = ctx.plugin({ name: 'pending', inject: ['store'], apply: () => {} })
  const failed = ctx.plugin({
    name: 'failed',
    apply: () => {
      throw new Error('x')
    },
  })
  ctx.on('internal/fiber', fiber => void seen.push([fiber.name, fiber.state]))
  await Promise.all([pending.dispose(), failed.dispose()])
  assert.deepEqual(
    seen.filter(([, state]) => state === 'disposed'),
    [
      ['pending', 'disposed'],
      ['failed', 'disposed'],
    ],
  )
})

test('timers end with the plugin, and one that throws is reported and stops nobody', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const ctx = new Context()
  const errors: string[] = []
  let ticks = 0
  ctx.on(
    'internal/error',
    (error, fiber, where) => void errors.push(`${fiber.name} ${where}: ${(error as Error).message}`),
  )
  const fiber = ctx.plugin({
    name: 'ticker',
    apply: own => {
      own.setInterval(() => void ticks++, 10)
      own.setTimeout(() => {
        throw new Error('late')
      }, 15)
    },
  })
  t.mock.timers.tick(30)
  await fiber.dispose()
  t.mock.timers.tick(100)
  assert.equal(ticks, 3)
  assert.deepEqual(errors, ['ticker timer: late'])
})

test('a timer made during a reload is not taken for part of it', async () => {
  const ctx = new Context()
  const outer = ctx.plugin(() => {})
  const done = gate()
  const fiber = ctx.plugin(async own => {
    own.setTimeout(() => void outer.dispose().then(done.open), 0)
  })
  await fiber
  await done.opened
  assert.equal(outer.state, 'disposed')
})

test('inject in a wrong form is refused with the right one', () => {
  const ctx = new Context()
  for (const inject of ['tools', [1], { tools: true }, { required: 'tools' }]) {
    const plugin = { name: 'user', inject: inject as never, apply: () => {} }
    assert.throws(() => ctx.plugin(plugin), {
      code: 'INVALID_PLUGIN',
      message: `inject of plugin "user" is ${JSON.stringify(inject)}; write a list of service keys, or {required: [...], optional: [...]}`,
    })
  }
  const both = ctx.plugin({
    name: 'user',
    inject: { required: ['store'], optional: ['clock'] },
    apply: () => {},
  })
  assert.deepEqual(both.inspect().waitsFor, ['store'])
})

test('what is no plugin is refused', () => {
  const ctx = new Context()
  for (const plugin of [undefined, null, 1, 'fs', {}, { apply: 1 }]) {
    assert.throws(() => ctx.plugin(plugin as never), { code: 'INVALID_PLUGIN' })
  }
})

test('inspect tells what runs, waits, provides and failed', async () => {
  const ctx = new Context()
  ctx.plugin(Store)
  ctx.plugin({ name: 'user', inject: ['clock'], apply: () => {} })
  const fiber = ctx.plugin({
    name: 'noisy',
    apply: own => {
      own.on('internal/fiber', () => {
        throw new Error('listener failed')
      })
    },
  })
  assert.deepEqual(
    ctx.inspect().children.map(child => [child.name, child.state, child.waitsFor, child.provides]),
    [
      ['Store', 'active', [], ['store']],
      ['user', 'pending', ['clock'], []],
      ['noisy', 'active', [], []],
    ],
  )
  assert.deepEqual(fiber.inspect().effects, ['on internal/fiber'])
  assert.deepEqual(fiber.inspect().errors, [{ where: 'internal/fiber', message: 'listener failed' }])
})

test('disposing the root ends the tree and leaves no plugin behind', async () => {
  const ctx = new Context()
  ctx.plugin(Store)
  ctx.plugin({ name: 'user', inject: ['store'], apply: () => {} })
  await ctx.dispose()
  assert.deepEqual(ctx.inspect().children, [])
  assert.throws(() => ctx.plugin(Store), { code: 'INACTIVE_EFFECT' })
})
