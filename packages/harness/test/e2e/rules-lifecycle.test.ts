import assert from 'node:assert/strict'
import { AsyncResource } from 'node:async_hooks'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../src/core/agent/index.ts'
import { lintLog } from '../../src/core/invariants/index.ts'
import type { Context } from '../../src/kernel/index.ts'
import { text, toolCall } from '../../src/plugins/llm-scripted/index.ts'
import { say } from '../../src/testing/index.ts'
import { baseNames, compose, turn } from './composed.ts'

const outsideOfTurns = new AsyncResource('outside')
/** As a file watcher or another client would ask: on nobody's behalf. */
const outside = <T>(work: () => T): T => outsideOfTurns.runInAsyncScope(work)

function lastResult(agent: Agent): string {
  const { message } = (agent.session.last('tool/result') as SessionEvent<'tool/result'>).data
  return JSON.stringify(message.content[0].content)
}

function endOf(agent: Agent): string | undefined {
  return agent.session.last('turn/end')?.data.reason.kind
}

/** A turn in which the model asks the clock. */
async function askClock(
  agent: Agent,
  adapter: { push(...entries: ReturnType<typeof text>[]): void },
): Promise<string> {
  adapter.push(toolCall('clock', {}), text('done'))
  await turn(agent, 'what time is it?')
  assert.equal(endOf(agent), 'completed')
  assert.deepEqual(lintLog(agent.session.events), [])
  return lastResult(agent)
}

test('a change of comments leaves open sessions alone, and a change of another plugin leaves them working', async t => {
  const host = await compose(t, { files: { 'dsh.yml': '- {id: notes, config: {level: 1}}\n' } })
  const { composition, file, adapter, ctx, errors } = host
  const { agent: old } = await host.agent('old')
  const kept = await host.agent('kept')
  await askClock(kept.agent, adapter)
  await kept.dispose()
  const changes: string[] = []
  ctx.on('internal/fiber', ({ name, state }) => void changes.push(`${name} ${state}`))

  await writeFile(file, '# a word\n- {id: notes, config: {level: 1}} # another\n')
  await composition.refresh()
  assert.deepEqual(changes, [])

  await writeFile(file, '- {id: notes, config: {level: 2}}\n')
  await composition.refresh()
  assert.deepEqual(changes, ['notes unloading', 'notes pending', 'notes loading', 'notes active'])
  const { agent: fresh } = await host.agent('fresh')
  const { agent: resumed } = await host.resume('kept')
  for (const agent of [old, fresh, resumed])
    assert.equal(await askClock(agent, adapter), '[{"type":"text","text":"UTC 1"}]')

  await writeFile(file, '- {id: notes, config: {level: 2}}\n- {id: clock, config: {zone: CET}}\n')
  await composition.refresh()
  for (const agent of [old, fresh, resumed])
    assert.equal(await askClock(agent, adapter), '[{"type":"text","text":"CET 2"}]')
  // The same tools in the same order: nothing that a provider caches has changed.
  const reasons = [...old.session.since(0)].flatMap(event =>
    event.type === 'request/header' ? [event.data.reason] : [],
  )
  assert.deepEqual(reasons, ['initial'])
  assert.deepEqual(errors, [])
})

test('a plugin that is gone takes its tools from open sessions, which say so and go on, and brings them back', async t => {
  const host = await compose(t)
  const { composition, file, adapter } = host
  const { agent } = await host.agent('a')
  await askClock(agent, adapter)
  await composition.update(file, 'clock', { disabled: true })
  assert.match(await askClock(agent, adapter), /unknown tool/)
  await composition.update(file, 'clock', { disabled: false })
  assert.equal(await askClock(agent, adapter), '[{"type":"text","text":"UTC 2"}]')
})

test('a change waits for the turn that runs, and a prompt that comes in its midst is answered by the new plugins', async t => {
  const host = await compose(t)
  const { ctx, composition, file, adapter } = host
  const { agent } = await host.agent('a')
  const gate = Promise.withResolvers<void>()
  adapter.push(() => gate.promise.then(() => toolCall('clock', {})), text('done'))
  agent.followup(say('what time is it?'))
  const seen: string[] = []
  ctx.on('internal/fiber', ({ name, state }) => {
    if (name !== 'clock' || state !== 'unloading') return
    seen.push(lastResult(agent))
    adapter.push(toolCall('clock', {}), text('done'))
    agent.followup(say('and now?'))
    seen.push(agent.status)
  })
  const changed = composition.update(file, 'clock', { config: { zone: 'CET' } })
  await new Promise(setImmediate)
  assert.deepEqual(seen, [])
  gate.resolve()
  await changed
  await agent.whenIdle()
  assert.deepEqual(seen, ['[{"type":"text","text":"UTC 1"}]', 'idle'])
  assert.equal(lastResult(agent), '[{"type":"text","text":"CET 2"}]')
  assert.deepEqual(lintLog(agent.session.events), [])
})

test('a tool that waits for a change of plugins is told that it cannot, and the turn goes on', async t => {
  const host = await compose(t)
  const { composition, file, adapter } = host
  const { agent } = await host.agent('a')
  let other: Promise<void> | undefined
  agent.ctx.tools.register({
    name: 'reconfigure',
    description: 'Switches the clock off.',
    parameters: { type: 'object', properties: {} },
    output: { schema: {}, render: () => [{ type: 'text', text: 'done' }] },
    execute: () => composition.update(file, 'clock', { disabled: true }).then(() => 'done'),
  })
  // Another change that already waits for this very turn must not make it worse.
  adapter.push(() => {
    other = outside(() => composition.update(file, 'notes', { config: { level: 3 } }))
    return toolCall('reconfigure', {})
  }, text('done'))
  await turn(agent, 'go')
  assert.match(lastResult(agent), /agent \\"a\\" cannot wait for its own turn to end/)
  assert.equal(endOf(agent), 'completed')
  await other
  assert.match(await askClock(agent, adapter), /UTC 1/)
})

test('whatever plugin is switched off and on, finished sessions are listed and read as before', async t => {
  const host = await compose(t)
  const { ctx, composition, file, adapter, errors } = host
  for (const id of ['one', 'two']) {
    const handle = await host.agent(id)
    await askClock(handle.agent, adapter)
    await handle.dispose()
  }
  const look = async (): Promise<unknown> => {
    const rows = await ctx.sessionPersistence.list()
    const logs = await Promise.all(rows.map(({ id }) => ctx.sessionPersistence.inspect(id)))
    return { rows, snapshots: await ctx.sessionPersistence.listSnapshots(), logs }
  }
  const before = await look()
  assert.equal((before as { rows: unknown[] }).rows.length, 2)
  for (const id of baseNames) {
    await composition.update(file, id, { disabled: true })
    await composition.update(file, id, { disabled: false })
    assert.deepEqual(await look(), before, id)
  }
  assert.deepEqual(errors, [])
  const { agent } = await host.resume('one')
  assert.match(await askClock(agent, adapter), /UTC/)
})

test('a store that is switched off is an error to those who ask, never an empty list', async t => {
  const host = await compose(t)
  const { ctx, composition, file, adapter } = host
  const handle = await host.agent('one')
  await askClock(handle.agent, adapter)
  await handle.dispose()
  await composition.update(file, 'store-jsonl', { disabled: true })
  const missing = { code: 'MISSING_SERVICE', message: 'service "sessionPersistence" is not provided' }
  assert.throws(() => ctx.sessionPersistence.list(), missing)
  await assert.rejects(host.resume('one'), {
    code: 'NO_PERSISTENCE',
    message: 'session "one" cannot be resumed: nothing keeps sessions',
  })
  await composition.update(file, 'store-jsonl', { disabled: false })
  assert.deepEqual(
    (await ctx.sessionPersistence.list()).map(({ id }) => id),
    ['one'],
  )
})

test('an open session that outlives its store is stored whole when the store comes back', async t => {
  const host = await compose(t)
  const { ctx, composition, file, adapter } = host
  const { agent } = await host.agent('a')
  await askClock(agent, adapter)
  await composition.update(file, 'store-jsonl', { disabled: true })
  await askClock(agent, adapter)
  await composition.update(file, 'store-jsonl', { disabled: false })
  await askClock(agent, adapter)
  const events = [...agent.session.events]
  await ctx.sessions.flush(agent.session)
  await composition.update(file, 'loop', { disabled: true })
  const stored = await ctx.sessionPersistence.readFrom(SessionId('a'), 0)
  assert.deepEqual(stored.events.slice(0, events.length), events)
  assert.deepEqual(lintLog(stored.events), [])
})

const greeter = (mark: string): string => `
  export const greeter = {
    name: 'greeter',
    inject: ['sessions', 'agents'],
    apply(ctx) {
      ctx.sessions.registerEventType({
        type: 'greeter/greet', ${mark}
        validate(data) { if (typeof data.name !== 'string') throw new Error('name is no text') },
      })
      ctx.on('agent/session-start', ({ agent }) => void agent.session.append('greeter/greet', { name: 'Rex' }), { global: true })
    },
  }`

test("a plugin's own event survives a restart, a resume, and the plugin", async t => {
  const host = await compose(t)
  const { composition, file, adapter, dir, ctx } = host
  await writeFile(join(dir, 'greeter.ts'), greeter('ignorable: true,'))
  await writeFile(file, '- {name: ./greeter.ts}\n')
  await composition.refresh()
  const handle = await host.agent('a')
  await askClock(handle.agent, adapter)
  await handle.dispose()
  const again = await host.resume('a')
  await askClock(again.agent, adapter)
  await again.dispose()
  await writeFile(file, '[]\n')
  await composition.refresh()
  const { agent } = await host.resume('a')
  await askClock(agent, adapter)
  const greetings = [...agent.session.since(0)].filter(event => (event.type as string) === 'greeter/greet')
  assert.deepEqual(
    greetings.map(({ data, ignorable }) => [data, ignorable]),
    [
      [{ name: 'Rex' }, true],
      [{ name: 'Rex' }, true],
    ],
  )
  assert.deepEqual(await ctx.sessionPersistence.inspect(SessionId('a')).then(log => log.readOnly), undefined)
})

test('without the plugin of an event that must be understood the session is read, not continued, and says which', async t => {
  const host = await compose(t)
  const { composition, file, adapter, dir, ctx } = host
  await writeFile(join(dir, 'greeter.ts'), greeter(''))
  await writeFile(file, '- {name: ./greeter.ts}\n')
  await composition.refresh()
  const handle = await host.agent('a')
  await askClock(handle.agent, adapter)
  const { length } = handle.agent.session
  await handle.dispose()
  await composition.update(file, 'greeter', { disabled: true })
  await assert.rejects(host.resume('a'), {
    code: 'SESSION_READ_ONLY',
    message:
      'session "a" cannot go on: session "a" has events of type "greeter/greet" (first: 0), which no loaded plugin declares; load it and open the session again',
  })
  const seen = await ctx.sessionPersistence.inspect(SessionId('a'))
  assert.ok(seen.events.length >= length)
  await composition.update(file, 'greeter', { disabled: false })
  const { agent } = await host.resume('a')
  await askClock(agent, adapter)
})

test('a session works beside plugins that are missing, hang, are for another host, or wait for ever', async t => {
  const host = await compose(t, {
    files: {
      'dsh.yml': ['absent', './hangs.ts', 'misfit', './waits.ts', './throws.ts']
        .map(name => `- {name: ${name}}\n`)
        .join(''),
      'hangs.ts': 'await new Promise(() => {})',
      'waits.ts': 'export const waits = { name: "waits", inject: ["never"], apply() {} }',
      'throws.ts': 'export const throws = { name: "throws", apply() { throw new Error("no") } }',
      'node_modules/misfit/package.json': '{"name":"misfit","type":"module","exports":"./dist/main.js"}',
    },
  })
  const { loader, composition, file, adapter } = host
  const { agent } = await host.agent('a')
  assert.match(await askClock(agent, adapter), /UTC/)
  const rows = loader.report().filter(({ id }) => !(baseNames as readonly string[]).includes(id))
  assert.equal(rows.length, 5)
  for (const { id, state, reason } of rows) {
    assert.notEqual(state, 'active', id)
    assert.ok((reason ?? '').length > 0, id)
  }
  await writeFile(file, '[]\n')
  await composition.refresh()
  assert.match(await askClock(agent, adapter), /UTC/)
  assert.equal(loader.report().length, baseNames.length)
})

test('an edited plugin file gives open sessions its new tool from the next turn on', async t => {
  const host = await compose(t)
  const { composition, file, adapter, dir, loader } = host
  const source = (word: string): string => `
    export const parrot = {
      name: 'parrot',
      inject: ['tools'],
      apply(ctx) {
        ctx.tools.register({
          name: 'parrot', description: 'Speaks.', parameters: { type: 'object', properties: {} },
          output: { schema: {}, render: (_args, value) => [{ type: 'text', text: value }] },
          execute: () => '${word}',
        })
      },
    }`
  await writeFile(join(dir, 'parrot.ts'), source('hello'))
  await writeFile(file, '- {name: ./parrot.ts}\n')
  await composition.refresh()
  const { agent } = await host.agent('a')
  const ask = async (): Promise<string> => {
    adapter.push(toolCall('parrot', {}), text('done'))
    await turn(agent, 'speak')
    return lastResult(agent)
  }
  assert.match(await ask(), /hello/)
  await writeFile(join(dir, 'parrot.ts'), source('bye'))
  assert.deepEqual(await loader.reload([pathToFileURL(join(dir, 'parrot.ts')).href]), ['parrot'])
  assert.match(await ask(), /bye/)
  await writeFile(join(dir, 'parrot.ts'), 'export const = broken')
  await assert.rejects(loader.reload([pathToFileURL(join(dir, 'parrot.ts')).href]))
  assert.match(await ask(), /bye/)
  assert.deepEqual(lintLog(agent.session.events), [])
})

test('a handler of a plugin that throws or rejects in the middle of a turn is told of by name and stops nothing', async t => {
  const clumsy = {
    name: 'clumsy',
    apply(ctx: Context) {
      ctx.on('session/event', () => {
        throw new Error('thrown')
      })
      ctx.on('agent/status', async () => {
        throw new Error('rejected')
      })
      ctx.setTimeout(async () => {
        throw new Error('late')
      }, 0)
    },
  }
  const host = await compose(t, { rows: [{ name: 'clumsy' }], plugins: { clumsy } })
  const { adapter, errors } = host
  const { agent } = await host.agent('a')
  assert.match(await askClock(agent, adapter), /UTC/)
  await new Promise(resolve => setTimeout(resolve, 5))
  const kinds = new Set(errors)
  assert.deepEqual([...kinds].toSorted(), [
    'clumsy agent/status: rejected',
    'clumsy session/event: thrown',
    'clumsy timer: late',
  ])
})
