import { reply, startMockProvider } from '@dsh/harness/testing'
import type { MockProvider, MockRequest } from '@dsh/harness/testing'
import { answerOf, scenarios } from './scenario.ts'

// A process of its own, so that the provider's work is not on the clock of whoever measures.

/** What the process is told: a run begins, a run is over. */
export type Order = { readonly scenario: string; readonly folder: string } | 'over'

export interface Observed {
  /** Epoch ms at which each request of the main line had arrived. */
  readonly arrivals: readonly number[]
  /** Epoch ms at which each of them was answered. */
  readonly answers: readonly number[]
  readonly firstBytes: number
  readonly tools: number
  /** Tool results in the last request. */
  readonly results: number
}

export type Told = { readonly url: string } | Observed

let provider: MockProvider | undefined
let observed: Observed & { readonly arrivals: number[]; readonly answers: number[] }

process.on('message', (order: Order) => {
  void (order === 'over' ? end() : begin(order)).then(told => process.send?.(told))
})
process.on('disconnect', () => process.exit())

async function begin({ scenario: name, folder }: Exclude<Order, 'over'>): Promise<Told> {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`no scenario "${name}"`)
  observed = { arrivals: [], answers: [], firstBytes: 0, tools: 0, results: 0 }
  provider = await startMockProvider({
    key: null,
    rules: 'off',
    // Titles and the like have no tools and are no step.
    side: ({ body }) => (body.tools?.length ? undefined : reply.text('Bench')),
    fallback(request) {
      const step = observe(request)
      const answer = answerOf(scenario, step, request.body, folder)
      observed.answers.push(performance.timeOrigin + performance.now())
      return answer
    },
  })
  return { url: provider.url }
}

function observe({ body, bytes }: MockRequest): number {
  const { arrivals } = observed
  arrivals.push(performance.timeOrigin + performance.now())
  const results = body.messages?.filter(({ role }) => role === 'tool').length ?? 0
  const isFirst = arrivals.length === 1
  observed = {
    ...observed,
    results,
    ...(isFirst ? { firstBytes: bytes.length, tools: body.tools?.length ?? 0 } : {}),
  }
  return arrivals.length - 1
}

async function end(): Promise<Told> {
  await provider?.close()
  return observed
}
