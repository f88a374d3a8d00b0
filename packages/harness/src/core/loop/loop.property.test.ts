import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import fc from 'fast-check'
import { SessionId } from '@dsh/protocol'
import type { Message, StreamChunk } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import { fail, text, toolCalls } from '../../plugins/llm-scripted/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import type { Agent } from '../agent/index.ts'
import { lintLog, rebuildRequest, requestMismatch } from '../invariants/index.ts'
import { LlmAdapter } from '../llm/index.ts'
import type { GenerateOptions } from '../llm/index.ts'
import { turnCursor } from '../session/index.ts'
import { defineTool } from '../tools/index.ts'

type Act =
  | 'followup'
  | 'steer'
  | 'inject'
  | 'cancel'
  | 'cancel, keep'
  | 'clear'
  | 'maintenance'
  | 'throw'
  | 'wait'

const points = [
  'session/event',
  'agent/status',
  'agent/inbox/inserted',
  'agent/inbox/claimed',
  'agent/inbox/discarded',
  'agent/cancel-requested',
  'agent/parked',
  'agent/error',
  'agent/pre-step',
  'agent/request',
  'agent/request-error',
  'agent/turn-stopping',
  'system-prompt/assemble',
  'llm/stream',
  'tools/pre-execute',
  'tools/execute',
  'tools/post-execute',
  'tools/result',
  'body',
  'chunk',
  'flush',
] as const

/** What happens where: at the nth time a point is passed, the act is done there. */
interface Deed {
  readonly point: (typeof points)[number]
  readonly nth: number
  readonly act: Act
}

const deeds = fc.array(
  fc.record<Deed>({
    point: fc.constantFrom(...points),
    nth: fc.integer({ min: 1, max: 6 }),
    act: fc.constantFrom<Act>(
      'followup',
      'steer',
      'inject',
      'cancel',
      'cancel, keep',
      'clear',
      'maintenance',
      'throw',
      'wait',
    ),
  }),
  { maxLength: 8 },
)

const answers = fc.array(fc.constantFrom('text', 'calls', 'fail', 'cut', 'nothing', 'throw'), {
  maxLength: 8,
})

/** Answers by a list, and with text when the list is over. */
class Listed extends LlmAdapter {
  readonly #kinds: string[]
  readonly #pass: () => Promise<void>

  constructor(kinds: readonly string[], pass: () => Promise<void>) {
    super()
    this.#kinds = [...kinds]
    this.#pass = pass
  }

  override async *stream({ signal }: GenerateOptions): AsyncIterable<StreamChunk> {
    const kind = this.#kinds.shift() ?? 'text'
    if (kind === 'throw') throw new Error('adapter')
    const call = (name: string) => ({ name, args: {} })
    const script: Record<string, readonly StreamChunk[]> = {
      text: text('abc'),
      calls: toolCalls([call('p'), call('x'), call('p'), call('nobody')]),
      fail: fail('SERVER'),
      cut: [...text('ab').slice(0, -1), { type: 'finish', reason: { kind: 'max-tokens' } }],
      nothing: [],
    }
    for (const chunk of script[kind] ?? []) {
      await this.#pass()
      signal?.throwIfAborted()
      yield chunk
    }
  }
}

/** Runs deeds where they are due, and follows every message that was sent. */
class Director {
  agent: Agent | undefined
  isOver = false
  /** Where each message went, in the end. */
  readonly fates = new Map<string, string[]>()
  readonly #plan: readonly Deed[]
  readonly #passed = new Map<string, number>()

  constructor(plan: readonly Deed[]) {
    this.#plan = plan
  }

  went(message: Message, where: string): void {
    this.fates.get(message.id)?.push(where)
  }

  /** Does at once what can be done at once, so that observers act inside of the event. */
  pass(point: Deed['point']): Promise<void> {
    const count = (this.#passed.get(point) ?? 0) + 1
    this.#passed.set(point, count)
    const { agent } = this
    if (agent === undefined || this.isOver) return Promise.resolve()
    const todo = this.#plan.filter(deed => deed.point === point && deed.nth === count)
    return Promise.all(todo.map(({ act }) => this.act(act, agent))).then(() => {})
  }

  async act(what: Act, agent: Agent): Promise<void> {
    if (what === 'followup' || what === 'steer' || what === 'inject') {
      const message = say(what)
      this.fates.set(message.id, [])
      agent[what](message)
    }
    if (what === 'cancel') agent.cancel({ kind: 'user' })
    if (what === 'cancel, keep') agent.cancel({ kind: 'parent' }, { keepInbox: true })
    if (what === 'clear') agent.inbox.clear()
    if (what === 'throw') throw new Error('deed')
    if (what === 'wait') await nextTask()
    if (what === 'maintenance') maintain(agent)
  }

  end(agent: Agent): void {
    this.isOver = true
    for (const message of [...agent.inbox.nextStep, ...agent.inbox.nextTurn]) this.went(message, 'queue')
  }
}

function maintain(agent: Agent): void {
  try {
    agent.runMaintenance(() => nextTask()).catch(() => {})
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'AGENT_BUSY')
  }
}

const observed = [
  'session/event',
  'agent/inbox/inserted',
  'agent/inbox/claimed',
  'agent/inbox/discarded',
  'agent/cancel-requested',
  'agent/parked',
  'agent/error',
  'tools/result',
  'agent/turn-stopping',
] as const

const wrapped = [
  'agent/pre-step',
  'agent/request',
  'agent/request-error',
  'system-prompt/assemble',
  'tools/pre-execute',
  'tools/execute',
  'tools/post-execute',
] as const

/** Lets the director in everywhere. */
function open(ctx: Context, director: Director): void {
  for (const name of observed) ctx.on(name, () => director.pass(name))
  ctx.on('session/flush', () => director.pass('flush'))
  for (const name of wrapped) {
    const wrap = async (...args: unknown[]): Promise<unknown> => {
      await director.pass(name)
      return (args.at(-1) as () => unknown)()
    }
    ctx.on(name, wrap as never)
  }
  for (const [name, isParallel] of [
    ['p', true],
    ['x', false],
  ] as const) {
    const execute = async (): Promise<string> => {
      await director.pass('body')
      await nextTask()
      return 'ok'
    }
    const isConcurrencySafe = (): boolean => isParallel
    ctx.tools.register(defineTool({ name, description: 'Acts.', parameters: {}, isConcurrencySafe, execute }))
  }
}

/** Follows what becomes of messages, what is sent, and what the status says. */
function watch(ctx: Context, director: Director) {
  const statuses: string[] = []
  const unmatched: string[] = []
  ctx.on('agent/status', ({ status }) => {
    statuses.push(status)
    return director.pass('agent/status')
  })
  ctx.on('llm/stream', async function* (options, next) {
    await director.pass('llm/stream')
    const session = ctx.sessions.get(options.sessionId ?? SessionId(''))
    const mismatch = requestMismatch(options, rebuildRequest(session?.events ?? []))
    if (mismatch !== undefined) unmatched.push(mismatch)
    yield* next()
  })
  ctx.on('agent/inbox/discarded', ({ message }) => director.went(message, 'discarded'))
  ctx.on('agent/parked', ({ returned }) => {
    for (const message of returned) director.went(message, 'returned')
  })
  ctx.on('session/event', (_session, { type, data }) => {
    if (type === 'user/message') director.went(data, 'history')
  })
  return { statuses, unmatched }
}

async function play(plan: readonly Deed[], kinds: readonly string[]) {
  const { ctx } = await createHarness()
  const director = new Director(plan)
  ctx.llm.registerAdapter(['listed'], new Listed(kinds, () => director.pass('chunk')))
  open(ctx, director)
  const { statuses, unmatched } = watch(ctx, director)
  const handle = await ctx.agents.create({
    sessionId: SessionId('a'),
    agentOptions: { provider: 'listed', model: 'm' },
  })
  const { agent } = handle
  director.agent = agent
  await director.act('followup', agent)
  await director.act('followup', agent)
  for (let i = 0; i < 4; i++) {
    await agent.whenIdle()
    await nextTask()
  }
  await agent.whenIdle()
  director.end(agent)
  return { ctx, handle, agent, statuses, unmatched, fates: director.fates }
}

test('whatever is done wherever, the log hangs together, requests are as logged, no input is lost, and the agent ends idle', async () => {
  await fc.assert(
    fc.asyncProperty(deeds, answers, async (plan, kinds) => {
      const { ctx, handle, agent, statuses, unmatched, fates } = await play(plan, kinds)
      assert.deepEqual(lintLog(agent.session.events), [])
      assert.deepEqual(unmatched, [])
      assert.equal(agent.status, 'idle')
      assert.equal(agent.session.fold(turnCursor).openTurn, undefined)
      assert.deepEqual(
        statuses,
        statuses.map((_status, index) => (index % 2 === 0 ? 'running' : 'idle')),
      )
      assert.equal(statuses.length % 2, 0)
      for (const [id, places] of fates) assert.equal(places.length, 1, `${id}: ${places.join()}`)
      await handle.dispose()
      assert.deepEqual(ctx.agents.list(), [])
      await ctx.dispose()
    }),
    { numRuns: 90 },
  )
})
