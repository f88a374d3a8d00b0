import { Context, Service } from '@dsh/harness/kernel'
import type { Emit, Waterfall } from '@dsh/harness/kernel'
import { report } from '../figure.ts'
import { cpuOf } from '../measure.ts'

declare module '@dsh/harness/kernel' {
  interface Services {
    benchCounter: Counter
  }
  interface Events {
    'bench/told': Emit<[value: number]>
    'bench/stream': Waterfall<[], AsyncIterable<number>>
  }
}

class Counter extends Service {
  private readonly state = { total: 0 }

  constructor(ctx: Context) {
    super(ctx, 'benchCounter')
  }

  add(value: number): void {
    this.state.total += value
  }
}

const count = 1_000_000

const ctx = new Context()
await ctx.plugin(Counter)
const heard = [0, 0, 0, 0, 0]
for (const index of heard.keys()) ctx.on('bench/told', value => void (heard[index] = value))

const emits = await cpuOf(() => () => {
  for (let index = 0; index < count; index++) ctx.emit('bench/told', index)
})
report({
  name: 'emit to 5 listeners',
  value: (emits / count) * 1000,
  unit: 'ns',
  of: 'CPU',
  budget: 100,
})

let calls = Number.NaN
await ctx.plugin(async function caller(own: Context) {
  const cpu = await cpuOf(() => () => {
    for (let index = 0; index < count; index++) own.benchCounter.add(index)
  })
  calls = (cpu / count) * 1000
})
report({ name: 'call of a service, ctx.<key>.method()', value: calls, unit: 'ns', of: 'CPU', budget: 20 })

const chunks = 200_000

async function* numbers(): AsyncGenerator<number, void> {
  for (let index = 0; index < chunks; index++) yield index
}

async function drain(stream: AsyncIterable<number>): Promise<void> {
  for await (const _ of stream);
}

const bare = await cpuOf(() => () => drain(numbers()))
ctx.on('bench/stream', next => next())
const hopped = await cpuOf(() => () => drain(ctx.waterfall('bench/stream', numbers)))
report({
  name: 'one wrapper around a stream, a chunk',
  value: ((hopped - bare) / chunks) * 1000,
  unit: 'ns',
  of: 'CPU',
  budget: 100,
})
