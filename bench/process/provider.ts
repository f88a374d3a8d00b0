import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { reply, startMockProvider } from '@dsh/harness/testing'
import type { MockProvider, MockRequest } from '@dsh/harness/testing'
import { answerOf, scenarios } from './scenario.ts'

// A process of its own, so that the provider's work is not on the clock of whoever measures.

/** What the process is told: a run begins, a run is over. */
export type Order = { readonly scenario: string; readonly folder: string } | 'over'

export interface Observed {
  /** Epoch ms at which each request of the main line began to arrive. */
  readonly arrivals: readonly number[]
  /** Epoch ms at which each of them was answered. */
  readonly answers: readonly number[]
  readonly firstBytes: number
  readonly tools: number
  /** Tool results in the last request. */
  readonly results: number
}

export type Told = { readonly url: string } | Observed

const now = (): number => performance.timeOrigin + performance.now()

let provider: MockProvider | undefined
/** When the request that is not answered yet began to arrive. */
let begun: number | undefined
let observed: Observed & { readonly arrivals: number[]; readonly answers: number[] }

process.on('message', (order: Order) => {
  void (order === 'over' ? end() : begin(order)).then(told => process.send?.(told))
})
process.on('disconnect', () => process.exit())
// The provider tells of a request when it is whole and read, which takes it some milliseconds where that is a megabyte.
subscribe('net.server.socket', message => {
  const { socket } = message as { readonly socket: Socket }
  socket.prependListener('data', () => (begun ??= now()))
})

async function begin({ scenario: name, folder }: Exclude<Order, 'over'>): Promise<Told> {
  const scenario = scenarios[name]
  if (scenario === undefined) throw new Error(`no scenario "${name}"`)
  observed = { arrivals: [], answers: [], firstBytes: 0, tools: 0, results: 0 }
  begun = undefined
  provider = await startMockProvider({
    key: null,
    rules: 'off',
    // Titles and the like have no tools and are no step.
    side({ body }) {
      if (body.tools?.length) return undefined
      begun = undefined
      return reply.text('Bench')
    },
    fallback(request) {
      const step = observe(request)
      const answer = answerOf(scenario, step, request.body, folder)
      observed.answers.push(now())
      begun = undefined
      return answer
    },
  })
  return { url: provider.url }
}

function observe({ body, bytes }: MockRequest): number {
  const { arrivals } = observed
  arrivals.push(begun ?? now())
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
