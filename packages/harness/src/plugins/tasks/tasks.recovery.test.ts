import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionFormatVersion, SessionId } from '@dsh/protocol'
import { lintLog } from '../../core/invariants/index.ts'
import { createHarness, headerFact, logOf, MemoryStore, say, userFact } from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { text } from '../llm-scripted/index.ts'
import { mountPersistence } from '../persistence/index.ts'
import { recovery } from '../recovery/index.ts'
import { tasks } from './index.ts'

const id = SessionId('s')

async function setup(drafts: readonly Draft[]) {
  const { ctx, adapter } = await createHarness([text('one'), text('two')])
  const store = new MemoryStore()
  await ctx.plugin({
    name: 'store',
    inject: ['sessions'],
    apply: own => mountPersistence(own, store.open(), { writeBatchMaxDelayMs: 1 }),
  })
  await ctx.plugin(recovery)
  await ctx.plugin(tasks)
  const writer = store.open().begin({ version: sessionFormatVersion, id, createdAt: 0, cwd: '/' })
  await writer.append(logOf(...drafts))
  await writer.close()
  const agentOptions = { provider: 'mock', model: 'mock' }
  const { agent } = await ctx.agents.resume({ resumeSessionId: id, agentOptions })
  const ask = async (words: string): Promise<string> => {
    agent.followup(say(words))
    await agent.whenIdle()
    return JSON.stringify(adapter.requests.at(-1)?.messages)
  }
  return { ctx, agent, adapter, ask, [Symbol.asyncDispose]: () => ctx.dispose() }
}

const brokenOff: readonly Draft[] = [
  ['turn/start', { turn: 1 }],
  ['step/start', { turn: 1, step: 1 }],
  ['user/message', userFact('go')],
  ['request/header', headerFact()],
  ['task/start', { id: 'bash-1', kind: 'bash', label: 'npm run dev' }],
]

test('a model is told once which tasks a crash took along, and finds them in its list', async () => {
  await using world = await setup(brokenOff)
  const lost = 'task bash-1 (npm run dev) ended with the program'
  assert.match(await world.ask('go on'), new RegExp(lost.replace(/[()]/g, '\\$&')))
  const again = await world.ask('and?')
  assert.equal(again.split(lost).length, 2, 'it is not told twice')
  assert.deepEqual(
    world.ctx.tasks.list(world.agent).map(task => [task.id, task.status]),
    [['bash-1', 'lost']],
  )
  assert.deepEqual(lintLog(world.agent.session.events), [])
  assert.deepEqual(world.agent.session.last('task/end')?.data, { id: 'bash-1', status: 'lost' })
})
