import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, appendFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import type { TestContext } from 'node:test'
import type { SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import { fail, text, toolCall } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { retry } from './index.ts'

async function setup(t: TestContext, ...script: readonly ScriptEntry[]) {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const harness = await createHarness(script)
  await harness.ctx.plugin(retry)
  const agent = harness.agent()
  /** Lets time pass until nothing runs any more. */
  const finish = async (): Promise<string> => {
    let idle = false
    void agent.whenIdle().then(() => void (idle = true))
    while (!idle) {
      await new Promise(resolve => setImmediate(resolve))
      mock.timers.tick(10_000)
    }
    return outline(agent.session.events)
  }
  return { ...harness, agent, finish }
}

async function untilLogged(agent: Agent, type: SessionEvent['type']): Promise<void> {
  while (!agent.session.events.some(event => event.type === type)) {
    await new Promise(resolve => setImmediate(resolve))
  }
}

test('a failed request is sent again in its step, and the message stands on the second answer alone', async t => {
  const { adapter, agent, finish } = await setup(t, fail('SERVER'), text('ok'))
  agent.followup(say('hi'))
  assert.equal(await finish(), 'sp ts sp ss um rh rc ch llm/retry llm/retry-started ch am se te:completed')
  const { events } = agent.session
  const answer = events.find(event => event.type === 'assistant/message')
  const started = events.find(event => event.type === 'llm/retry-started')
  assert.ok(answer?.sourceEventSeqs?.every(seq => seq > (started?.seq ?? Infinity)))
  assert.equal(adapter.requests.length, 2)
  assert.deepEqual(adapter.requests[1]?.messages, adapter.requests[0]?.messages)
})

test('a request that goes on failing ends the turn with its failure once the budget is used', async t => {
  const failing = Array.from({ length: 7 }, () => fail('RATE_LIMIT'))
  const { adapter, agent, finish } = await setup(t, ...failing)
  agent.followup(say('hi'))
  assert.match(await finish(), /te:error\{RATE_LIMIT\}$/)
  assert.equal(adapter.requests.length, 6)
})

test('a failure that time does not cure ends the turn at once', async t => {
  const { adapter, agent, finish } = await setup(
    t,
    fail('AUTH'),
    fail('QUOTA'),
    fail('RATE_LIMIT', { providerRetryAfterMs: 11_180_000 }),
  )
  for (const code of ['AUTH', 'QUOTA', 'RATE_LIMIT']) {
    agent.followup(say(code))
    assert.match(await finish(), new RegExp(`te:error\\{${code}\\}$`))
  }
  assert.equal(adapter.requests.length, 3)
  const ends = agent.session.events.filter(event => event.type === 'turn/end')
  const reason = ends.at(-1)?.data.reason
  assert.ok(reason?.kind === 'error')
  assert.equal(reason.error.providerRetryAfterMs, 11_180_000)
})

test('a rate limit behind finished tools does not run them again', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'retry-'))
  t.after(() => rm(folder, { recursive: true }))
  const marker = join(folder, 'marker')
  const limited = fail('RATE_LIMIT', { status: 429 })
  const { ctx, agent, finish } = await setup(t, toolCall('mark', {}), limited, limited, text('done'))
  ctx.tools.register(
    defineTool({
      name: 'mark',
      description: 'Leave a mark.',
      parameters: {},
      execute: async () => {
        await appendFile(marker, 'x')
        return 'marked'
      },
    }),
  )
  agent.followup(say('hi'))
  assert.match(
    await finish(),
    /tr se ss ch llm\/retry llm\/retry-started ch llm\/retry llm\/retry-started ch am se te:completed$/,
  )
  assert.equal(await readFile(marker, 'utf8'), 'x')
})

test('a cancel in the wait sends nothing more and ends the turn as cancelled', async t => {
  const { adapter, agent, finish } = await setup(t, fail('SERVER'), text('next'))
  agent.followup(say('hi'))
  await untilLogged(agent, 'llm/retry')
  agent.cancel({ kind: 'user' })
  await agent.whenIdle()
  assert.match(outline(agent.session.events), /ch llm\/retry se te:aborted\{user\}$/)
  assert.equal(adapter.requests.length, 1)
  agent.followup(say('again'))
  assert.match(await finish(), /am se te:completed$/)
})
