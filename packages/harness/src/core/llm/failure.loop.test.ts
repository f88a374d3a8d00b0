import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StreamChunk } from '@dsh/protocol'
import { HarnessError } from '../../kernel/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { fail } from '../../plugins/llm-scripted/index.ts'
import type { ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { LlmError } from './index.ts'

const limited = new LlmError({ message: 'slow down', code: 'RATE_LIMIT', status: 429 })
const word: StreamChunk = { type: 'text-delta', index: 0, text: 'word' }
const odd: unknown = Object.create(null)

const throws = (thrown: unknown): ScriptEntry => {
  return () => {
    throw thrown
  }
}

const forms: Readonly<Record<string, readonly [entry: ScriptEntry, code: string]>> = {
  'told in the stream': [fail('RATE_LIMIT'), 'RATE_LIMIT'],
  'an LlmError': [throws(limited), 'RATE_LIMIT'],
  'a rejection': [() => Promise.reject(limited), 'RATE_LIMIT'],
  'a harness error': [throws(new HarnessError('NO_DISK', 'full')), 'NO_DISK'],
  'an ordinary error': [throws(new TypeError('x')), 'UNKNOWN'],
  'a string': [throws('cut'), 'UNKNOWN'],
  nothing: [throws(undefined), 'UNKNOWN'],
  'an object that can do nothing': [throws(odd), 'UNKNOWN'],
  'a chunk that is none': [[word, { type: 'odd' } as unknown as StreamChunk], 'MALFORMED_RESPONSE'],
  'an error behind the first words': [
    function* () {
      yield word
      throw limited
    },
    'RATE_LIMIT',
  ],
}

for (const [form, [entry, code]] of Object.entries(forms)) {
  test(`a turn whose model fails by ${form} ends with that failure and one finish chunk`, async () => {
    const { agent: createAgent } = await createHarness([entry])
    const agent = createAgent()
    agent.followup(say('hi'))
    await agent.whenIdle()
    const { events } = agent.session
    assert.equal(outline(events), `sp ts sp ss um rh rc ch se te:error{${code}}`)
    const chunks = events.flatMap(event => (event.type === 'assistant/chunk' ? [event.data.chunk] : []))
    assert.deepEqual(
      chunks.map(chunk => chunk.type),
      chunks.length === 1 ? ['finish'] : ['text-delta', 'finish'],
    )
  })
}
