import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { AgentRegistry } from '../../src/core/agent/index.ts'
import { Commands } from '../../src/core/commands/index.ts'
import { lintLog } from '../../src/core/invariants/index.ts'
import { createUserMessage, LlmAdapter, LlmError, LlmRuntime } from '../../src/core/llm/index.ts'
import { AgentLoop } from '../../src/core/loop/index.ts'
import { SystemPrompt } from '../../src/core/prompt/index.ts'
import { createScope, scopeChainOf, scopeTarget } from '../../src/core/scope/index.ts'
import { SessionStore, turnCursor } from '../../src/core/session/index.ts'
import { defineTool, ToolRuntime } from '../../src/core/tools/index.ts'
import { Context, HarnessError, isJsonValue, kernelCopies, Service } from '../../src/kernel/index.ts'
import { Loader, parseRows } from '../../src/kernel/loader/index.ts'
import { fail, ScriptedAdapter, text, toolCall } from '../../src/plugins/llm-scripted/index.ts'
import { retry } from '../../src/plugins/retry/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import {
  createHarness,
  headerFact,
  logOf,
  outline,
  say,
  textFact,
  userFact,
} from '../../src/testing/index.ts'
import type { Draft } from '../../src/testing/index.ts'

declare module '../../src/kernel/index.ts' {
  interface Services {
    shelf: Shelf
  }
}

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    'shelf/note': { readonly note?: number }
  }
}

const blockStart = { type: 'block-start', index: 0, blockType: 'text' } as const

interface Shelf {
  put(name: string): void
  list(): string[]
}

const source = join(import.meta.dirname, '../../src')
// Node strips no types below node_modules, so the copy lies beside it.
const dir = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-copies-')))
const copy = join(dir, 'copy')

const parts = {
  'kernel/index.ts': { Context, HarnessError, isJsonValue, kernelCopies, Service },
  'core/llm/index.ts': { createUserMessage, LlmAdapter, LlmError, LlmRuntime },
  'core/session/index.ts': { SessionStore, turnCursor },
  'core/prompt/index.ts': { SystemPrompt },
  'core/tools/index.ts': { defineTool, ToolRuntime },
  'core/agent/index.ts': { AgentRegistry },
  'core/loop/index.ts': { AgentLoop },
  'core/commands/index.ts': { Commands },
  'core/scope/index.ts': { createScope, scopeTarget },
  'plugins/store-jsonl/index.ts': { storeJsonl },
}
type Parts = typeof parts

/** The same parts from the copy. */
async function other<Path extends keyof Parts>(path: Path): Promise<Parts[Path]> {
  return (await import(pathToFileURL(join(copy, path)).href)) as Parts[Path]
}

before(async () => {
  cpSync(source, copy, { recursive: true, filter: path => !path.endsWith('.test.ts') })
  symlinkSync(join(import.meta.dirname, '../../../../node_modules'), join(dir, 'node_modules'))
  await other('kernel/index.ts')
})

after(() => rmSync(dir, { recursive: true, force: true }))

/** Every error the tree tells of. */
function listen(ctx: Context): { readonly code: unknown; readonly message: string }[] {
  const heard: { code: unknown; message: string }[] = []
  ctx.on('internal/error', error => {
    const { code, message } = error as { code: unknown; message: string }
    heard.push({ code, message })
  })
  return heard
}

async function run(
  script: Parameters<typeof createHarness>[0],
  prepare: (ctx: Context) => void | Promise<void>,
) {
  const harness = await createHarness(script)
  await prepare(harness.ctx)
  const agent = harness.agent('a')
  agent.followup(say('go'))
  await agent.whenIdle()
  return { ...harness, agent, events: agent.session.events }
}

const last = <T extends SessionEvent['type']>(events: readonly SessionEvent[], type: T): SessionEvent<T> =>
  events.findLast(event => event.type === type) as SessionEvent<T>

test('the copies share no module, and both know of both', async () => {
  const kernel = await other('kernel/index.ts')
  assert.notEqual(kernel.Context, Context)
  assert.notEqual(kernel.Service, Service)
  assert.equal(kernelCopies().length, 2)
  assert.deepEqual(kernelCopies(), kernel.kernelCopies())
})

test('a second copy is told of once in each tree, when a plugin is mounted, with the folders of both', async () => {
  const ctx = new Context()
  const heard = listen(ctx)
  assert.equal(heard.length, 0)
  await ctx.plugin({ name: 'one', apply: () => {} })
  await ctx.plugin({ name: 'two', apply: () => {} })
  const [notice, ...more] = heard
  assert.deepEqual(more, [])
  assert.equal(notice?.code, 'SECOND_COPY')
  assert.equal(
    notice?.message,
    `2 copies of the kernel are loaded, where one is enough: ${join(source, 'kernel')}, ${join(copy, 'kernel')}`,
  )
  assert.deepEqual(
    ctx.inspect().errors.map(({ where }) => where),
    ['copies'],
  )
})

test('a plugin file that brings its own copy runs, and the copy is named', async () => {
  const own = join(dir, 'third')
  cpSync(join(source, 'kernel'), own, { recursive: true, filter: path => !path.endsWith('.test.ts') })
  const plugin = `
    import { Service } from './third/index.ts'
    export class Shelf extends Service {
      private readonly names = new Map()
      constructor(ctx) { super(ctx, 'shelf') }
      put(name) {
        this.ctx.effect(() => { this.names.set(name, this.ctx.fiber.name); return () => this.names.delete(name) }, name)
      }
      list() { return [...this.names].map(([name, by]) => name + ' of ' + by) }
    }`
  writeFileSync(join(dir, 'shelf.ts'), plugin)
  const ctx = new Context()
  const loader = new Loader(ctx)
  await ctx.plugin({ name: 'before', apply: () => {} })
  const heard = listen(ctx)
  await loader.apply([parseRows([{ name: './shelf.ts' }], pathToFileURL(join(dir, 'dsh.yml')).href)])
  assert.deepEqual(loader.report(), [{ id: 'shelf', name: './shelf.ts', state: 'active' }])
  assert.deepEqual(
    heard.map(({ code }) => code),
    ['SECOND_COPY'],
  )
  assert.ok(heard[0]?.message.endsWith(`, ${own}`))
  const user = ctx.plugin({ name: 'user', inject: ['shelf'], apply: mine => mine.shelf.put('book') })
  assert.deepEqual(ctx.shelf.list(), ['book of user'])
  await user.dispose()
  assert.deepEqual(ctx.shelf.list(), [])
  await ctx.dispose()
})

test('effects, events, timers and children of a plugin of another copy end with it', async t => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const ctx = new Context()
  const log: string[] = []
  const kernel = await other('kernel/index.ts')
  class Foreign extends kernel.Service {
    constructor(own: Context) {
      super(own, 'shelf')
      own.on('internal/fiber', ({ name, state }) => void log.push(`${name} ${state}`))
      own.setInterval(() => log.push('tick'), 10)
      own.effect(function* () {
        yield () => void log.push('undone')
      })
      void own.plugin({ name: 'child', apply: () => {} })
    }
  }
  const fiber = ctx.plugin(Foreign)
  await fiber
  t.mock.timers.tick(10)
  assert.equal(log.at(-1), 'tick')
  await fiber.dispose()
  const after = log.length
  assert.ok(log.includes('undone') && log.includes('child disposed'))
  t.mock.timers.tick(100)
  await ctx.plugin({ name: 'later', apply: () => {} })
  assert.equal(log.length, after)
  assert.throws(() => ctx.shelf, { code: 'MISSING_SERVICE' })
})

test('an error of another copy keeps its name and code on the way to the model', async () => {
  const kernel = await other('kernel/index.ts')
  const tools = await other('core/tools/index.ts')
  class ShelfError extends kernel.HarnessError {
    static {
      this.prototype.name = 'ShelfError'
    }
  }
  const { events } = await run([toolCall('shelve', { what: 'book' }), text('done')], ctx => {
    const tool = tools.defineTool({
      name: 'shelve',
      description: 'Puts something on the shelf.',
      parameters: { what: { type: 'string' } },
      execute: () => {
        throw new ShelfError('SHELF_FULL', 'the shelf is full')
      },
    })
    ctx.tools.register(tool)
  })
  assert.deepEqual(last(events, 'tool/result').data.error, { name: 'ShelfError', code: 'SHELF_FULL' })
  assert.deepEqual(lintLog(events), [])
})

test('an adapter of another copy is asked, fails with its facts, and is retried by our policy', async () => {
  const llm = await other('core/llm/index.ts')
  let attempts = 0
  class ForeignAdapter extends llm.LlmAdapter {
    override providerRetryPolicy() {
      return { maxRetries: 1, initialDelayMs: 1 }
    }

    override async *stream() {
      attempts++
      if (attempts === 1) throw new llm.LlmError({ code: 'SERVER', message: 'busy', status: 503 })
      yield* text('at last') as Iterable<never>
    }
  }
  const { ctx, agent } = await createHarness().then(async harness => {
    await harness.ctx.plugin(retry)
    harness.ctx.llm.registerAdapter(['foreign'], new ForeignAdapter())
    return { ctx: harness.ctx, agent: harness.agent('a', { provider: 'foreign', model: 'm' }) }
  })
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.equal(attempts, 2)
  assert.match(outline(agent.session.events), /am se te:completed$/)
  assert.deepEqual(lintLog(agent.session.events), [])
  await ctx.dispose()
})

test('a failure that a listener of another copy throws ends the turn with its code', async () => {
  const llm = await other('core/llm/index.ts')
  const { events } = await run([text('never')], ctx => {
    ctx.on('agent/request', () => {
      throw new llm.LlmError({ code: 'QUOTA', message: 'nothing left', status: 402 })
    })
  })
  assert.deepEqual(last(events, 'turn/end').data.reason, {
    kind: 'error',
    error: { code: 'QUOTA', message: 'nothing left', status: 402 },
  })
})

test('messages, folds and event types of another copy are taken for what they are', async () => {
  const kernel = await other('kernel/index.ts')
  const { createUserMessage: create } = await other('core/llm/index.ts')
  const { turnCursor: cursor } = await other('core/session/index.ts')
  const { agent, events } = await run([fail('AUTH')], ctx => {
    ctx.sessions.registerEventType({
      type: 'shelf/note',
      ignorable: true,
      validate: data => {
        if ((data as { note?: unknown }).note === undefined)
          throw new kernel.HarnessError('NO_NOTE', 'no note')
      },
    })
  })
  const message = create({
    content: [{ type: 'text', text: 'from afar' }],
    source: { kind: 'plugin', plugin: 'foreign' },
  })
  agent.inject(message)
  const { session } = agent
  assert.deepEqual(session.fold(cursor), session.fold(turnCursor))
  assert.throws(() => session.append('shelf/note', {}), {
    code: 'INVALID_EVENT',
    message: 'event "shelf/note" of plugin "root": no note',
  })
  session.append('shelf/note', { note: 1 })
  assert.equal(kernel.isJsonValue(session.events), true)
  assert.equal(events.length + 2, session.length)
  assert.equal(agent.inbox.nextStep[0]?.id, message.id)
})

test('a scope that another copy makes below ours is below it for both', async () => {
  const ctx = new Context()
  const [outer, inner] = [{ name: 'outer' }, { name: 'inner' }]
  const above = ctx.extend({ scope: outer })
  const scopes = await other('core/scope/index.ts')
  const scope = scopes.createScope(ctx, inner, { parent: outer })
  const heard: string[] = []
  above.on('internal/fiber', () => void heard.push('x'))
  assert.deepEqual(scopeChainOf(inner), [inner, outer])
  assert.equal(scopes.scopeTarget(inner).admits(outer), true)
  await scope.dispose()
  assert.deepEqual(scopeChainOf(inner), [inner])
})

test('a store of another copy keeps our sessions, and we go on with them', async () => {
  const { storeJsonl: store } = await other('plugins/store-jsonl/index.ts')
  const root = join(dir, 'sessions')
  const first = await run(
    [toolCall('nothing', {}, 'c1'), text('an answer whose sources are a range')],
    async ctx => {
      await ctx.plugin(store, { root })
    },
  )
  await first.ctx.dispose()
  const { ctx, adapter } = await createHarness([text('two')])
  await ctx.plugin(store, { root })
  const { agent } = await ctx.agents.resume({
    resumeSessionId: SessionId('a'),
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  agent.followup(say('on'))
  await agent.whenIdle()
  assert.match(outline(agent.session.events), /te:completed$/)
  assert.deepEqual(lintLog(agent.session.events), [])
  assert.deepEqual(
    agent.session.events.slice(0, first.events.length).filter(({ type }) => type !== 'tool/start'),
    first.events.filter(({ type }) => type !== 'tool/start'),
  )
  assert.equal(adapter.requests.length, 1)
  assert.equal(CallId('c1'), last(first.events, 'tool/call').data.callId)
  await ctx.dispose()
})

test('a turn that a crash cut off is closed by a store of another copy', async () => {
  const { storeJsonl: store } = await other('plugins/store-jsonl/index.ts')
  const { ctx } = await createHarness()
  await ctx.plugin(store, { root: join(dir, 'cut-off') })
  const id = SessionId('cut-off')
  await ctx.sessionPersistence.create({ version: 0, id, createdAt: 1 })
  const letters = 'half an answer'.split('').map((letter): Draft => ['assistant/chunk', textFact(letter)])
  const begun: Draft = ['assistant/chunk', { turn: 1, step: 1, chunk: blockStart }]
  await ctx.sessionPersistence.append(
    id,
    logOf(
      ['turn/start', { turn: 1 }],
      ['step/start', { turn: 1, step: 1 }],
      ['user/message', userFact('go')],
      ['request/header', headerFact()],
      begun,
      ...letters,
    ),
  )
  const { agent } = await ctx.agents.resume({ resumeSessionId: id })
  const message = last(agent.session.events, 'assistant/message')
  assert.equal(message.data.interrupted, true)
  assert.ok((message.sourceEventSeqs?.length ?? 0) > 10)
  assert.deepEqual(lintLog(agent.session.events), [])
  await ctx.dispose()
})

test('each service of the core may come from another copy', async () => {
  const services = async (from: <Path extends keyof Parts>(path: Path) => Promise<Parts[Path]>) => [
    (await from('core/llm/index.ts')).LlmRuntime,
    (await from('core/session/index.ts')).SessionStore,
    (await from('core/prompt/index.ts')).SystemPrompt,
    (await from('core/tools/index.ts')).ToolRuntime,
    (await from('core/agent/index.ts')).AgentRegistry,
    (await from('core/loop/index.ts')).AgentLoop,
    (await from('core/commands/index.ts')).Commands,
  ]
  const ours = await services(path => Promise.resolve(parts[path]))
  const theirs = await services(other)
  for (const [index, service] of theirs.entries()) {
    const ctx = new Context()
    for (const plugin of ours.with(index, service)) await ctx.plugin(plugin as typeof Commands)
    const adapter = new ScriptedAdapter([toolCall('who', {}), text('done')])
    ctx.llm.registerAdapter(['mock'], adapter)
    const heard: string[] = []
    const agent = ctx.agentLoop.create(SessionId('a'), { provider: 'mock', model: 'mock' })
    agent.ctx.on('session/event', (_session, { type }) => heard.push(type))
    const who = () => ctx.agents.currentInitiator()?.id ?? 'nobody'
    agent.ctx.tools.register(
      defineTool({ name: 'who', description: 'Says who asks.', parameters: {}, execute: who }),
    )
    agent.followup(say('go'))
    await agent.whenIdle()
    const { events } = agent.session
    assert.match(outline(events), /te:completed$/, service.name)
    assert.deepEqual(lintLog(events), [], service.name)
    assert.equal(heard.length, events.length, service.name)
    assert.match(JSON.stringify(last(events, 'tool/result').data.message), /"text":"a"/, service.name)
    await ctx.dispose()
  }
})
