import type { StreamChunk } from '@dsh/protocol'
import { LlmAdapter } from '@dsh/harness/llm'
import type { LlmResolvedModelInfo } from '@dsh/harness/llm'
import { toolCall } from '@dsh/harness/plugins/llm-scripted'
import { createHarness, say } from '@dsh/harness/testing'
import { defineTool } from '@dsh/harness/tools'
import { report } from '../figure.ts'
import { medianOf } from '../measure.ts'

const steps = 2000
const early = 10
const window = 100

const note = defineTool({
  name: 'note',
  description: 'Keeps a note.',
  parameters: { text: { type: 'string' } },
  execute: ({ text }) => `noted: ${text}`,
})

/** Asks for a note in each step but the last. Unlike the scripted one it keeps no request. */
class NoteAdapter extends LlmAdapter {
  #left = steps

  override resolveModel(provider: string, id: string): Promise<LlmResolvedModelInfo> {
    return Promise.resolve({ provider, id, name: id })
  }

  override async *stream(): AsyncGenerator<StreamChunk, void> {
    if (this.#left-- > 0) yield* toolCall('note', { text: `note ${this.#left}` })
    else yield { type: 'finish', reason: { kind: 'stop' } }
  }
}

interface TurnCost {
  /** CPU µs of a step, over the `window` that begins at step `early` and over the last one. */
  readonly first: number
  readonly last: number
  /** Wall ms from what a request is to ask for to the request, at 3000 messages. */
  readonly build: number
}

async function runTurn(): Promise<TurnCost> {
  const { ctx, agent } = await createHarness()
  ctx.llm.registerAdapter(['note'], new NoteAdapter())
  ctx.tools.register(note)
  const marks = new Map<number, NodeJS.CpuUsage>()
  const builds: number[] = []
  let asked = 0
  ctx.on('agent/request', async ({ step }, next) => {
    if ([early, early + window, steps - window, steps].includes(step)) marks.set(step, process.cpuUsage())
    const config = await next()
    asked = performance.now()
    return config
  })
  ctx.on('llm/stream', ({ messages }, next) => {
    if (messages.length > 2900 && messages.length < 3100) builds.push(performance.now() - asked)
    return next()
  })
  const one = agent('one', { provider: 'note', model: 'note' })
  one.followup(say('go'))
  await one.whenIdle()
  await ctx.dispose()
  const between = (from: number, to: number): number => {
    const [begin, end] = [marks.get(from), marks.get(to)]
    if (begin === undefined || end === undefined) throw new Error(`the turn had no step ${to}`)
    return (end.user + end.system - begin.user - begin.system) / window
  }
  return {
    first: between(early, early + window),
    last: between(steps - window, steps),
    build: medianOf(builds),
  }
}

await runTurn()
const turns: TurnCost[] = []
for (let turn = 0; turn < 7; turn++) turns.push(await runTurn())
const first = medianOf(turns.map(turn => turn.first))
const last = medianOf(turns.map(turn => turn.last))

report({ name: `core’s part of a step, from step ${early} on`, value: first, unit: 'µs', of: 'CPU' })
report({ name: `the same, up to step ${steps}`, value: last, unit: 'µs', of: 'CPU' })
report({
  name: `step ${steps} against step ${early}`,
  value: last / first,
  unit: '×',
  of: 'ratio',
  budget: 1.2,
})
report({
  name: 'request build at 3000 messages',
  value: medianOf(turns.map(turn => turn.build)),
  unit: 'ms',
  of: 'wall',
  budget: 0.3,
})
