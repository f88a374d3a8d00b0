import type { StreamChunk } from '@dsh/protocol'
import { createHarness, say } from '@dsh/harness/testing'
import { report } from '../figure.ts'
import { cpuSince, liveBytes, medianOf } from '../measure.ts'

const deltas = 100_000
const word = 'word'

function* answer(): Generator<StreamChunk, void> {
  yield { type: 'block-start', index: 0, blockType: 'text' }
  for (let index = 0; index < deltas; index++) yield { type: 'text-delta', index: 0, text: word }
  yield { type: 'block-end', index: 0, block: { type: 'text', text: word.repeat(deltas) } }
  yield { type: 'usage', usage: { inputTokens: 1, outputTokens: deltas } }
  yield { type: 'finish', reason: { kind: 'stop' } }
}

const cpu: number[] = []
const bytes: number[] = []
const messages: number[] = []
for (let run = 0; run < 5; run++) {
  const { ctx, agent } = await createHarness([() => answer()])
  for (let listener = 0; listener < 4; listener++) ctx.on('session/event', () => {})
  const one = agent()
  let last = process.cpuUsage()
  ctx.on('session/event', (_session, event) => {
    if (event.type === 'assistant/chunk' && event.data.chunk.type === 'finish') last = process.cpuUsage()
    if (event.type === 'assistant/message') messages.push(cpuSince(last))
  })
  const empty = liveBytes()
  const before = process.cpuUsage()
  one.followup(say('go'))
  await one.whenIdle()
  cpu.push(cpuSince(before) / deltas)
  bytes.push((liveBytes() - empty) / deltas)
  await ctx.dispose()
}

report({
  name: 'turn of 100,000 chunks, a chunk',
  value: medianOf(cpu.slice(1)),
  unit: 'µs',
  of: 'CPU',
  budget: 3,
})
report({ name: 'the same, kept for a chunk', value: medianOf(bytes.slice(1)), unit: 'bytes', of: 'memory' })
report({
  name: 'from the last of 100,000 chunks to its message',
  value: medianOf(messages.slice(1)) / 1000,
  unit: 'ms',
  of: 'CPU',
})
