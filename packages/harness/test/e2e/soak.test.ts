import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { SessionId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import type { Agent, AgentHandle } from '../../src/core/agent/index.ts'
import { lintLog } from '../../src/core/invariants/index.ts'
import { LlmAdapter, LlmError } from '../../src/core/llm/index.ts'
import type { GenerateOptions } from '../../src/core/llm/index.ts'
import { turnCursor } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import type { Context, FiberReport } from '../../src/kernel/index.ts'
import { text, toolCalls } from '../../src/plugins/llm-scripted/index.ts'
import { say } from '../../src/testing/index.ts'
import { baseNames, compose, turn } from './composed.ts'
import type { Composed } from './composed.ts'

type Random = (below: number) => number

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): Random {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Answers with texts, calls of tools that are there or not, and failures, now sooner and now later. */
class Whim extends LlmAdapter {
  readonly #random: Random

  constructor(random: Random) {
    super()
    this.#random = random
  }

  override providerRetryPolicy() {
    return { maxRetries: 2, initialDelayMs: 1, maxDelayMs: 2 }
  }

  override async *stream({ tools = [], messages, signal }: GenerateOptions): AsyncIterable<StreamChunk> {
    const dice = this.#random(10)
    if (dice === 0) throw new LlmError({ code: 'SERVER', message: 'on a whim' })
    const names = [...tools.map(({ name }) => name), 'ghost']
    const isLong = messages.length > 0 && messages.at(-1)?.source.kind === 'tool' && dice < 6
    const calls = Array.from({ length: 1 + this.#random(3) }, () => ({
      name: names[this.#random(names.length)] ?? 'ghost',
      args: {},
    }))
    for (const chunk of dice < 5 && !isLong ? toolCalls(calls) : text('so be it')) {
      if (this.#random(4) === 0) await nextTask()
      signal?.throwIfAborted()
      yield chunk
    }
  }
}

const parrot = (word: string): string => `
  export const parrot = {
    name: 'parrot',
    inject: ['tools', 'sessions'],
    apply(ctx) {
      ctx.sessions.registerEventType({ type: 'parrot/said', ignorable: true })
      ctx.tools.register({
        name: 'parrot', description: 'Speaks.', parameters: { type: 'object', properties: {} },
        output: { schema: {}, render: (_args, value) => [{ type: 'text', text: value }] },
        execute: async (_args, exec) => {
          await new Promise(setImmediate)
          exec.agent?.session.append('parrot/said', { word: '${word}' })
          return '${word}'
        },
      })
      ctx.setInterval(() => {}, 5)
    },
  }`

/** What a person may run into while plugins come and go. */
const expected = new Set([
  'AGENT_DISPOSED',
  'AGENT_EXISTS',
  'INACTIVE_EFFECT',
  'MISSING_SERVICE',
  'NO_FACTORY',
  'NO_PERSISTENCE',
  'SESSION_ALREADY_EXISTS',
  'SESSION_LIVE',
  'SESSION_NOT_FOUND',
  'SESSION_NOT_LIVE',
  'STORE_CLOSED',
])

class Soak {
  readonly host: Composed
  readonly random: Random
  readonly surprises: string[] = []
  readonly handles = new Map<string, AgentHandle>()
  /** Everything that must be collected once it has ended. */
  readonly gone: WeakRef<object>[] = []
  readonly off = new Set<string>()
  turns = 0
  changes = 0
  #forks = 0
  #words = 0

  constructor(host: Composed, random: Random) {
    this.host = host
    this.random = random
    // Changes begin and end between turns: whatever a row's plugin is undone for, nobody is in the middle of one.
    host.ctx.on('internal/fiber', ({ name, state, parent }) => {
      if (state !== 'unloading' || parent !== host.ctx.fiber || name === 'forker') return
      const busy =
        host.ctx
          .get('agents')
          ?.list()
          .filter(agent => agent.status === 'running') ?? []
      for (const { id } of busy) this.surprises.push(`"${name}" was undone in a turn of "${id}"`)
    })
  }

  async attempt(what: string, deed: () => Promise<void>): Promise<void> {
    try {
      await deed()
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      const isEnd = /is unloading|creation aborted|is disposed/.test(message)
      if (!isEnd && !expected.has(code ?? '')) this.surprises.push(`${what}: ${code} ${message}`)
    }
  }

  async agent(id: string): Promise<Agent> {
    const known = this.handles.get(id)
    const { ctx } = this.host
    if (known !== undefined && ctx.agents.get(SessionId(id)) === known.agent) return known.agent
    const rows = await ctx.sessionPersistence.list()
    const isStored = rows.some(row => row.id === id)
    const handle = await (isStored ? this.host.resume(id) : this.host.agent(id))
    this.handles.set(id, handle)
    this.gone.push(new WeakRef(handle.agent), new WeakRef(handle.agent.session))
    return handle.agent
  }

  async person(id: string): Promise<void> {
    for (let act = 0; act < 14; act++) {
      await this.attempt(`person ${id}`, () => this.#act(id))
      if (this.random(3) === 0) await nextTask()
    }
  }

  async #act(id: string): Promise<void> {
    const agent = await this.agent(id)
    switch (this.random(9)) {
      case 0:
        return agent.steer(say('by the way'))
      case 1:
        return agent.inject(say('for later'))
      case 2:
        return agent.cancel({ kind: 'user' }, { keepInbox: this.random(2) === 0 })
      case 3: {
        await agent.whenIdle()
        return this.#fork(agent.session)
      }
      case 4: {
        const handle = this.handles.get(id)
        this.handles.delete(id)
        return handle?.dispose()
      }
      default:
        this.turns++
        return turn(agent, 'go on')
    }
  }

  /** A fork lives on its own for a moment, is stored, and is then led by an agent. */
  async #fork(source: Session): Promise<void> {
    const { ctx } = this.host
    const id = SessionId(`fork-${++this.#forks}`)
    const owner = ctx.plugin({
      name: 'forker',
      inject: ['sessions'],
      apply: own => void this.gone.push(new WeakRef(own.sessions.fork(source, undefined, id))),
    })
    try {
      await owner
    } finally {
      await owner.dispose()
    }
    const handle = await this.host.resume(id)
    this.gone.push(new WeakRef(handle.agent))
    await turn(handle.agent, 'on my own')
    await handle.dispose()
  }

  async change(): Promise<void> {
    const { composition, file, loader, dir } = this.host
    for (let round = 0; round < 12; round++) {
      this.changes++
      const dice = this.random(10)
      if (dice < 3) {
        await composition.update(file, 'clock', { config: { zone: `Z${this.random(5)}` } })
      } else if (dice < 6) {
        await writeFile(join(dir, 'parrot.ts'), parrot(`word ${++this.#words}`))
        await loader.reload([pathToFileURL(join(dir, 'parrot.ts')).href])
      } else {
        // The core itself seldom: its plugins take the agents with them.
        const rows = dice === 9 ? baseNames : (['clock', 'notes', 'retry', 'parrot', 'store-jsonl'] as const)
        await this.toggle(rows[this.random(rows.length)] ?? 'notes')
      }
      for (let i = this.random(4); i > 0; i--) await nextTask()
    }
    for (const row of this.off) await this.toggle(row)
  }

  async toggle(row: string): Promise<void> {
    const { composition, file } = this.host
    const disabled = !this.off.delete(row)
    if (disabled) this.off.add(row)
    await composition.update(file, row, { disabled })
  }

  async round(): Promise<void> {
    const people = ['ann', 'bob', 'cy'].map(id => this.person(id))
    await Promise.all([...people, this.change()])
    for (const agent of this.host.ctx.agents.list()) await agent.whenIdle()
  }

  async end(): Promise<void> {
    for (const handle of this.handles.values()) await handle.dispose()
    this.handles.clear()
  }
}

/** How often each effect is there, over all plugins. */
function census(report: FiberReport, counts = new Map<string, number>()): Map<string, number> {
  for (const label of [
    `plugin ${report.name} ${report.state}`,
    ...report.effects.map(effect => `${report.name}: ${effect}`),
  ])
    counts.set(label, (counts.get(label) ?? 0) + 1)
  for (const child of report.children) census(child, counts)
  return counts
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

async function heapAfterGc(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    await nextTask()
    collect()
  }
  return process.memoryUsage().heapUsed
}

async function start(t: TestContext, seed: number): Promise<Soak> {
  const random = randomOf(seed)
  const model = {
    name: 'model',
    inject: ['llm'],
    apply: (ctx: Context) => void ctx.llm.registerAdapter(['mock'], new Whim(random)),
  }
  const host = await compose(t, {
    files: { 'dsh.yml': '- {name: ./parrot.ts}\n', 'parrot.ts': parrot('hello') },
    plugins: { model },
  })
  return new Soak(host, random)
}

async function assertSound({ host, surprises }: Soak): Promise<void> {
  const { ctx, errors, problems } = host
  assert.deepEqual(surprises, [])
  assert.deepEqual(problems, [])
  assert.deepEqual(errors, [])
  for (const { id, session, status } of ctx.agents.list()) {
    assert.equal(status, 'idle')
    assert.deepEqual(lintLog(session.events), [], id)
    assert.equal(session.fold(turnCursor).openTurn, undefined)
  }
  for (const row of await ctx.sessionPersistence.list()) {
    assert.ok('header' in row, JSON.stringify(row))
    const { events, gaps, readOnly } = await ctx.sessionPersistence.inspect(row.id)
    assert.deepEqual([gaps, readOnly], [undefined, undefined])
    assert.deepEqual(lintLog(events), [], row.id)
  }
  for (const row of host.loader.report()) assert.equal(row.state, 'active', JSON.stringify(row))
}

for (const seed of [1, 2, 3]) {
  test(`sessions go on while plugins change, toggle and reload (seed ${seed})`, async t => {
    const soak = await start(t, seed)
    const { ctx } = soak.host
    const before = census(ctx.inspect())
    await soak.round()
    await assertSound(soak)
    assert.ok(soak.turns > 5 && soak.changes > 10)
    const agent = await soak.agent('ann')
    await turn(agent, 'are you there?')
    assert.ok(['completed', 'error'].includes(agent.session.last('turn/end')?.data.reason.kind ?? ''))
    await soak.end()
    assert.deepEqual(ctx.agents.list(), [])
    assert.deepEqual(ctx.sessions.list(), [])
    assert.deepEqual(census(ctx.inspect()), before)
  })
}

test('round after round leaves nothing behind: no agent, no session, no growing heap', async t => {
  const soak = await start(t, 99)
  const heaps: number[] = []
  for (let round = 0; round < 5; round++) {
    await soak.round()
    await soak.end()
    heaps.push(await heapAfterGc())
  }
  await assertSound(soak)
  const alive = soak.gone.filter(ref => ref.deref() !== undefined)
  assert.ok(soak.gone.length > 20)
  assert.deepEqual(alive, [])
  const [first = 0] = heaps
  const grown = Math.max(...heaps.slice(1)) - first
  assert.ok(grown < 2 ** 20, `the heap has grown by ${grown} bytes`)
})
