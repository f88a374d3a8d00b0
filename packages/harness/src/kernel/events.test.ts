import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Context } from './index.ts'
import type { Bail, Carrier, Emit, Parallel, Serial, Veto, Waterfall } from './index.ts'

declare module './index.ts' {
  interface Events {
    'test/emit': Emit<[value: number]>
    'test/veto': Veto<[value: number]>
    'test/parallel': Parallel<[value: number]>
    'test/serial': Serial<[value: number], string>
    'test/bail': Bail<[value: number], string>
    'test/wrap': Waterfall<[value: number], Promise<string>>
    'test/stream': Waterfall<[], AsyncIterable<number>>
  }
}

function setup() {
  const ctx = new Context()
  const heard: string[] = []
  const errors: string[] = []
  ctx.on(
    'internal/error',
    (error, _fiber, where) => void errors.push(`${where}: ${(error as Error).message}`),
  )
  return { ctx, heard, errors }
}

test('emit reaches every listener though one throws and one rejects', async () => {
  const { ctx, heard, errors } = setup()
  ctx.on('test/emit', () => {
    throw new Error('thrown')
  })
  ctx.on('test/emit', async () => {
    throw new Error('rejected')
  })
  ctx.on('test/emit', value => void heard.push(`last ${value}`))
  ctx.emit('test/emit', 7)
  await new Promise(setImmediate)
  assert.deepEqual(heard, ['last 7'])
  assert.deepEqual(errors, ['test/emit: thrown', 'test/emit: rejected'])
})

test('a listener of internal/error that throws does not loop', () => {
  const ctx = new Context()
  ctx.on('internal/error', () => {
    throw new Error('again')
  })
  ctx.on('test/emit', () => {
    throw new Error('first')
  })
  ctx.emit('test/emit', 1)
  assert.deepEqual(
    ctx.inspect().errors.map(error => error.message),
    ['first', 'again'],
  )
})

test('veto stops at the first throw, which escapes', () => {
  const { ctx, heard } = setup()
  ctx.on('test/veto', () => void heard.push('a'))
  ctx.on('test/veto', () => {
    throw new Error('no')
  })
  ctx.on('test/veto', () => void heard.push('c'))
  assert.throws(() => ctx.veto('test/veto', 1), /no/)
  assert.deepEqual(heard, ['a'])
})

test('parallel starts all, waits for all and joins the errors', async () => {
  const { ctx, heard } = setup()
  ctx.on('test/parallel', async () => {
    throw new Error('one')
  })
  ctx.on('test/parallel', async value => {
    await new Promise(setImmediate)
    heard.push(`done ${value}`)
  })
  await assert.rejects(ctx.parallel('test/parallel', 4), (error: AggregateError) => error.errors.length === 1)
  assert.deepEqual(heard, ['done 4'])
})

test('serial and bail give the first answer that is not empty', async () => {
  const { ctx } = setup()
  ctx.on('test/serial', async () => null)
  ctx.on('test/serial', value => `got ${value}`)
  ctx.on('test/serial', () => 'too late')
  ctx.on('test/bail', () => false)
  ctx.on('test/bail', value => `got ${value}`)
  assert.equal(await ctx.serial('test/serial', 1), 'got 1')
  assert.equal(ctx.bail('test/bail', 2), 'got 2')
})

test('a waterfall wraps from the first listener to the innermost', async () => {
  const { ctx } = setup()
  ctx.on('test/wrap', async (value, next) => `a${value}(${await next()})`)
  ctx.on('test/wrap', async (_value, next) => `b(${await next()})`)
  assert.equal(await ctx.waterfall('test/wrap', 1, async () => 'inner'), 'a1(b(inner))')
})

test('a wrapper that calls next again runs the whole rest of the chain again', async () => {
  const { ctx, heard } = setup()
  ctx.on('test/wrap', async (_value, next) => `${await next()}+${await next()}`)
  ctx.on('test/wrap', async (_value, next) => {
    heard.push('b')
    return next()
  })
  let runs = 0
  assert.equal(await ctx.waterfall('test/wrap', 1, async () => String(++runs)), '1+2')
  assert.deepEqual(heard, ['b', 'b'])
})

test('next may be called again after it failed', async () => {
  const { ctx } = setup()
  ctx.on('test/wrap', async (_value, next) => {
    try {
      return await next()
    } catch {
      return next()
    }
  })
  let runs = 0
  const inner = async (): Promise<string> => {
    if (++runs === 1) throw new Error('first try')
    return 'second try'
  }
  assert.equal(await ctx.waterfall('test/wrap', 1, inner), 'second try')
})

test('a second next while the first still runs is refused', async () => {
  const { ctx } = setup()
  ctx.on('test/wrap', async (_value, next) => (await Promise.all([next(), next()])).join())
  await assert.rejects(
    ctx.waterfall('test/wrap', 1, async () => 'x'),
    { code: 'NEXT_OPEN' },
  )
})

test('a stream counts as running until it ends or is closed', async () => {
  const { ctx } = setup()
  async function* inner(): AsyncGenerator<number> {
    yield 1
    yield 2
  }
  ctx.on('test/stream', async function* (next) {
    const first = next()
    assert.throws(next, { code: 'NEXT_OPEN' })
    for await (const value of first) {
      yield value
      break
    }
    yield* next()
  })
  const seen: number[] = []
  for await (const value of ctx.waterfall('test/stream', inner)) seen.push(value)
  assert.deepEqual(seen, [1, 1, 2])
})

test('a stream that failed may be asked for again, one that is only begun may not', async () => {
  const { ctx } = setup()
  let runs = 0
  async function* inner(): AsyncGenerator<number> {
    yield ++runs
    if (runs === 1) throw new Error('first try')
  }
  ctx.on('test/stream', async function* (next) {
    const first = next()[Symbol.asyncIterator]()
    assert.deepEqual(await first.next(), { done: false, value: 1 })
    assert.throws(next, { code: 'NEXT_OPEN' })
    await assert.rejects(first.next(), /first try/)
    assert.deepEqual(await first.next(), { done: true, value: undefined })
    yield* next()
  })
  const seen: number[] = []
  for await (const value of ctx.waterfall('test/stream', inner)) seen.push(value)
  assert.deepEqual(seen, [2])
})

test('closing a stream reaches its source while a read is under way', async () => {
  const { ctx, heard } = setup()
  const reading = Promise.withResolvers<IteratorResult<number>>()
  const source: AsyncIterableIterator<number> = {
    [Symbol.asyncIterator]: () => source,
    next: () => reading.promise,
    return() {
      heard.push('closed')
      reading.resolve({ done: true, value: undefined })
      return reading.promise
    },
  }
  ctx.on('test/stream', next => next())
  const stream = ctx.waterfall('test/stream', () => source)[Symbol.asyncIterator]()
  const read = stream.next()
  await stream.return?.()
  assert.deepEqual(heard, ['closed'])
  assert.deepEqual(await read, { done: true, value: undefined })
  await stream.return?.()
  assert.deepEqual(heard, ['closed'])
})

test('a stream closed before it was read leaves its source alone and frees next', async () => {
  const { ctx, heard } = setup()
  async function* inner(): AsyncGenerator<number> {
    heard.push('begun')
    yield 1
  }
  ctx.on('test/stream', async function* (next) {
    await next()[Symbol.asyncIterator]().return?.()
    yield* next()
  })
  for await (const value of ctx.waterfall('test/stream', inner)) heard.push(String(value))
  assert.deepEqual(heard, ['begun', '1'])
})

test('a dispatch keeps the listeners it began with', () => {
  const { ctx, heard } = setup()
  const stop = ctx.on('test/emit', () => {
    heard.push('a')
    stopB()
    ctx.on('test/emit', () => void heard.push('c'))
  })
  const stopB = ctx.on('test/emit', () => void heard.push('b'))
  ctx.emit('test/emit', 1)
  stop()
  ctx.emit('test/emit', 2)
  assert.deepEqual(heard, ['a', 'b', 'c'])
})

test('prepend goes first and once is heard once', () => {
  const { ctx, heard } = setup()
  ctx.on('test/emit', () => void heard.push('a'))
  ctx.once('test/emit', () => void heard.push('first'), { prepend: true })
  ctx.emit('test/emit', 1)
  ctx.emit('test/emit', 2)
  assert.deepEqual(heard, ['first', 'a', 'a'])
})

test('a carrier decides by the scope of the listener; global listeners always hear', () => {
  const { ctx, heard } = setup()
  const [left, right] = [{ name: 'left' }, { name: 'right' }]
  const carrier: Carrier = { version: 0, admits: scope => scope === undefined || scope === left }
  ctx.on('test/emit', () => void heard.push('untagged'))
  ctx.extend({ scope: left }).on('test/emit', () => void heard.push('left'))
  ctx.extend({ scope: right }).on('test/emit', () => void heard.push('right'))
  ctx.extend({ scope: right }).on('test/emit', () => void heard.push('global'), { global: true })
  ctx.emit(carrier, 'test/emit', 1)
  assert.deepEqual(heard, ['untagged', 'left', 'global'])
})

test('whether a dispatch would reach anybody can be known without one', () => {
  const { ctx, heard } = setup()
  const [left, right] = [{ name: 'left' }, { name: 'right' }]
  const carrier: Carrier = { version: 0, admits: scope => scope === left }
  assert.equal(ctx.isHeard('test/emit'), false)
  ctx.extend({ scope: right }).on('test/emit', () => void heard.push('right'))
  assert.deepEqual([ctx.isHeard('test/emit'), ctx.isHeard('test/emit', carrier)], [true, false])
  const stop = ctx.extend({ scope: left }).on('test/emit', () => void heard.push('left'))
  assert.equal(ctx.isHeard('test/emit', carrier), true)
  stop()
  assert.equal(ctx.isHeard('test/emit', carrier), false)
  assert.deepEqual(heard, [])
})

test('a carrier whose version rose is asked again', () => {
  const { ctx, heard } = setup()
  let open = false
  const carrier = { version: 0, admits: () => open }
  ctx.on('test/emit', value => void heard.push(String(value)))
  ctx.emit(carrier, 'test/emit', 1)
  open = true
  carrier.version++
  ctx.emit(carrier, 'test/emit', 2)
  assert.deepEqual(heard, ['2'])
})

test('a payload put before the name is an error, not a filter', () => {
  const { ctx } = setup()
  assert.throws(() => ctx.emit({ agent: 1 } as never, 'test/emit', 1), TypeError)
})

test('internal/dispatch hears every dispatch and may refuse it', () => {
  const { ctx, heard } = setup()
  ctx.on('internal/dispatch', (mode, name, args) => {
    if (args[0] === 13) throw new Error('refused')
    heard.push(`${mode} ${name}`)
  })
  ctx.on('test/emit', value => void heard.push(String(value)))
  ctx.emit('test/emit', 1)
  assert.throws(() => ctx.emit('test/emit', 13), /refused/)
  assert.deepEqual(heard, ['emit test/emit', '1'])
})

test('listeners of a disposed plugin hear nothing', async () => {
  const { ctx, heard } = setup()
  const fiber = ctx.plugin(own => void own.on('test/emit', () => void heard.push('x')))
  await fiber.dispose()
  ctx.emit('test/emit', 1)
  assert.deepEqual(heard, [])
})

test('the compiler refuses a dispatch in another mode, with other arguments, or of an event that nobody declared', () => {
  const { ctx, heard } = setup()
  const dispatches: (() => unknown)[] = [
    // @ts-expect-error -- a veto is not emitted
    () => ctx.emit('test/veto', 1),
    // @ts-expect-error -- nobody may refuse what is emitted
    () => ctx.veto('test/emit', 1),
    // @ts-expect-error -- a serial event is not told to all at once
    () => ctx.parallel('test/serial', 1),
    // @ts-expect-error -- the number is missing
    () => ctx.emit('test/emit'),
    // @ts-expect-error -- a text is no number
    () => ctx.emit('test/emit', 'one'),
    // @ts-expect-error -- what the innermost next runs is missing
    () => ctx.waterfall('test/wrap', 1),
    // @ts-expect-error -- a wrapper gives what it wraps
    () => ctx.on('test/wrap', (value, _next) => value),
    // @ts-expect-error -- not declared
    () => ctx.emit('test/none'),
  ]
  const right: (() => unknown)[] = [
    () => ctx.on('test/bail', value => `${value}`),
    () => heard.push(ctx.bail('test/bail', 2) ?? ''),
  ]
  for (const each of right) each()
  assert.deepEqual([dispatches.length, heard], [8, ['2']])
})
