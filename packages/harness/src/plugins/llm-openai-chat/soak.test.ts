import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUserMessage } from '../../core/llm/index.ts'
import { collectAnswer, reply, startMockProvider } from '../../testing/index.ts'
import { OpenAIChatAdapter } from './index.ts'

const messages = [createUserMessage({ content: [{ type: 'text', text: 'hi' }], source: { kind: 'user' } })]
const event = { choices: [{ index: 0, delta: { content: 'part' } }] }

const faults = [
  reply.text('fine'),
  reply.text('fine').hold(),
  reply.text('fine').close(),
  reply.sse([event], { done: false }).hold(),
  reply.sse([event], { done: false }).cut({ pieces: 1, how: 'rst' }),
  reply.sse([event]).cut({ bytes: 30, how: 'fin' }),
  reply.nothing('hold'),
  reply.nothing('rst'),
  reply.nothing('fin'),
  reply.status(429, { body: 'slow down' }),
  reply.status(500, { body: 'half' }).cut({ bytes: 2, how: 'hold' }),
  reply.raw('garbage\r\n\r\n'),
]

const live = (): string[] =>
  process.getActiveResourcesInfo().filter(name => name === 'TCPSocketWrap' || name === 'Timeout')

test('requests of all kinds, half of them aborted, leave nothing running', async t => {
  const before = live().length
  const provider = await startMockProvider({
    fallback: request => faults[request.n % faults.length] ?? reply.text(''),
  })
  const adapter = new OpenAIChatAdapter({
    env: provider.env,
    lingerMs: 10,
    providers: { deepseek: { idleTimeoutMs: 150 } },
  })
  const rejections: unknown[] = []
  const onRejection = (error: unknown): void => void rejections.push(error)
  process.on('unhandledRejection', onRejection)
  t.after(() => process.off('unhandledRejection', onRejection))
  const ask = async (at: number): Promise<string> => {
    const signal = at % 2 === 0 ? AbortSignal.timeout(at % 25) : undefined
    const stream = adapter.stream({ provider: 'deepseek', model: 'm', messages, ...(signal && { signal }) })
    return (await collectAnswer(stream)).finish.kind
  }
  const ends = new Set<string>()
  for (let round = 0; round < 3; round++) {
    const kinds = await Promise.all(Array.from({ length: 24 }, (_, at) => ask(at + round)))
    for (const kind of kinds) ends.add(kind)
  }
  adapter.close()
  await provider.close()
  for (let turns = 0; live().length > before && turns < 1000; turns++) await new Promise(setImmediate)
  assert.deepEqual([...ends].toSorted(), ['error', 'stop'])
  assert.deepEqual(rejections, [])
  assert.ok(live().length <= before, live().join(', '))
})
