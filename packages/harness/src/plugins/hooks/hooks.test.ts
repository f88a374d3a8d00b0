import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { createHarness, say } from '../../testing/index.ts'
import { text } from '../llm-scripted/index.ts'
import { sandbox } from '../sandbox/index.ts'
import { subprocess } from '../subprocess/index.ts'
import { trust } from '../trust/index.ts'
import { hooks } from './index.ts'

async function setup(t: TestContext) {
  const work = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-hooks-')))
  const { ctx, adapter } = await createHarness([text('ok'), text('ok')])
  await ctx.plugin(subprocess)
  await ctx.plugin(sandbox)
  const notices: string[] = []
  ctx.on('hooks/notice', ({ code, message }) => void notices.push(`${code}: ${message}`))
  const plugin = ctx.plugin(hooks, {})
  await plugin
  const { agent } = await ctx.agents.create({
    sessionId: SessionId('s'),
    meta: { cwd: work },
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  t.after(async () => {
    await ctx.dispose()
    rmSync(work, { recursive: true, force: true })
  })
  const turn = async (): Promise<void> => {
    agent.followup(say('go'))
    await agent.whenIdle()
  }
  return { ctx, adapter, plugin, agent, work, notices, turn }
}

const result = {
  id: 'a',
  turn: 1,
  point: 'Stop',
  handlerId: 'x Stop[0].hooks[0]',
  decision: 'none',
  durationMs: 3,
} as const

test('without hook files a turn is as it was', async t => {
  const { agent, turn, notices } = await setup(t)
  await turn()
  assert.deepEqual(notices, [])
  assert.ok(!agent.session.events.some(({ type }) => type.startsWith('hook/')))
})

test('without a service that says whom a person trusts, a project is not trusted', async t => {
  const { work, turn, notices } = await setup(t)
  mkdirSync(join(work, '.claude'))
  writeFileSync(join(work, '.claude/settings.json'), '{"hooks":{}}')
  await turn()
  await turn()
  assert.deepEqual(notices, [
    'HOOKS_NOT_TRUSTED: hooks of the project are not loaded, as this folder is not trusted: .claude/settings.json; `dsh trust` shows them and asks',
  ])
})

test('a log takes sound hook events alone', async t => {
  const { agent } = await setup(t)
  agent.session.append('hook/result', result)
  for (const wrong of [{ decision: 'maybe' }, { durationMs: -1 }, { point: 'Setup' }])
    assert.throws(
      () => agent.session.append('hook/result', { ...result, ...wrong } as never),
      /hook\/result|hooks/,
    )
})

test('disposing the plugin takes its events and listeners away', async t => {
  const { agent, plugin, work, turn, notices } = await setup(t)
  await plugin.dispose()
  // Nobody declares it any more, so nobody checks it.
  agent.session.append('hook/result', { ...result, decision: 'maybe' } as never)
  mkdirSync(join(work, '.claude'))
  writeFileSync(join(work, '.claude/settings.json'), '{"hooks":{}}')
  await turn()
  assert.deepEqual(notices, [])
})

test("where a session works in the person's own folder, that of the program is no project's", async t => {
  const { ctx, plugin, work, turn, notices } = await setup(t)
  await plugin.dispose()
  const home = join(work, '.dsh')
  mkdirSync(home)
  writeFileSync(join(home, 'hooks.json'), '{"hooks":{}}')
  writeFileSync(join(home, 'log'), 'of a session')
  await ctx.plugin(trust, { home })
  await ctx.trust.grant(work)
  await ctx.plugin(hooks, { home })
  await turn()
  assert.deepEqual(notices, [])
})
