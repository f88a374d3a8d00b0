import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTask } from 'node:timers/promises'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, StreamChunk } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import { fail, text, toolCall, toolCalls } from '../../plugins/llm-scripted/index.ts'
import type { ScriptedAdapter, ScriptEntry } from '../../plugins/llm-scripted/index.ts'
import { createHarness, outline, say } from '../../testing/index.ts'
import type { Agent, AgentHandle } from '../agent/index.ts'
import { lintLog } from '../invariants/index.ts'
import { LlmAdapter } from '../llm/index.ts'
import { defineTool } from '../tools/index.ts'

/** What a row may touch; `stop` cancels or disposes, once. */
interface Scene {
  readonly ctx: Context
  readonly agent: Agent
  readonly adapter: ScriptedAdapter
  /** Names of tools whose body ran. */
  readonly ran: string[]
  /** Policies that were asked, in order. */
  readonly policies: string[]
  stop(): void
}

interface Row {
  readonly phase: string
  readonly script?: readonly ScriptEntry[]
  /** Sets the trap before anything runs. */
  arrange(scene: Scene): void
  /** Begins what is to be stopped; a followup unless said otherwise. */
  act?(scene: Scene): void
  /** The log after a cancel, and after a disposal. */
  readonly cancelled: string
  readonly disposed: string
  readonly requests?: number
  /** The last policy of the loop that was asked. */
  readonly last?: string
  check?(scene: Scene): void
}

const begun = 'sp ts sp ss um'
const asked = `${begun} rh rc`
const both = (words: string): Pick<Row, 'cancelled' | 'disposed'> => ({
  cancelled: `${words} te:aborted{user}`,
  disposed: `${words} te:aborted{disposed}`,
})

function at(matches: (event: SessionEvent) => boolean) {
  return ({ ctx, stop }: Scene): void => {
    ctx.on('session/event', (_session, event) => {
      if (matches(event)) stop()
    })
  }
}

const ofType = (type: SessionEvent['type']) => at(event => event.type === type)

function waiting(options: { readonly signal?: AbortSignal }): Promise<never> {
  return new Promise((_resolve, reject) => {
    options.signal?.addEventListener('abort', () => reject(new Error('gone')))
  })
}

async function* silentThenAborted(options: { readonly signal?: AbortSignal }): AsyncIterable<StreamChunk> {
  await waiting(options)
  yield* []
}

async function* wordsAndHalfACall(options: { readonly signal?: AbortSignal }): AsyncIterable<StreamChunk> {
  yield* text('I will greet').slice(0, -2)
  yield* toolCall('greet', { name: 'Rex' })
    .slice(0, 3)
    .map(chunk => ({ ...chunk, index: 1 }) as StreamChunk)
  await waiting(options)
}

async function* halfACall(options: { readonly signal?: AbortSignal }): AsyncIterable<StreamChunk> {
  yield* toolCall('greet', { name: 'Rex' }).slice(0, 3)
  await waiting(options)
}

const twoCalls = toolCalls([
  { name: 'greet', args: { name: 'a' } },
  { name: 'greet', args: { name: 'b' } },
])

const isTextDelta = (event: SessionEvent): boolean =>
  event.type === 'assistant/chunk' && event.data.chunk.type === 'text-delta'

function codesOf(agent: Agent): (string | undefined)[] {
  return agent.session.events.flatMap(event => (event.type === 'tool/result' ? [event.data.error?.code] : []))
}

const rows: readonly Row[] = [
  {
    phase: 'idle with nothing queued',
    arrange: () => {},
    act: ({ stop }) => stop(),
    cancelled: '',
    disposed: '',
  },
  {
    phase: 'idle with parked input',
    arrange: () => {},
    act: ({ agent, stop }) => {
      agent.inject(say('parked'))
      stop()
    },
    cancelled: 'sp sp',
    disposed: 'sp',
  },
  {
    phase: 'when the status becomes running',
    arrange: ({ ctx, stop }) =>
      void ctx.on('agent/status', ({ status }) => (status === 'running' ? stop() : undefined)),
    cancelled: 'sp sp',
    disposed: 'sp',
  },
  {
    phase: 'at the start of the turn',
    arrange: ofType('turn/start'),
    cancelled: 'sp ts sp te:aborted{user}',
    disposed: 'sp ts te:aborted{disposed}',
  },
  {
    phase: 'right after the claim',
    arrange: () => {},
    act: ({ agent, stop }) => {
      agent.followup(say('go'))
      stop()
    },
    ...both('sp ts sp'),
  },
  {
    phase: 'while a runtime context is rendered',
    arrange: ({ ctx, stop }) => {
      const late = async (): Promise<string> => {
        await nextTask()
        stop()
        return 'noon'
      }
      ctx.systemPrompt.context({ name: 'time', order: 0, text: late })
    },
    ...both('sp ts sp'),
    last: 'none',
  },
  {
    phase: 'in pre-step',
    arrange: ({ ctx, stop }) =>
      void ctx.on('agent/pre-step', async (_payload, next) => {
        await nextTask()
        stop()
        return next()
      }),
    ...both('sp ts sp'),
  },
  {
    phase: 'at the start of the step',
    arrange: ofType('step/start'),
    ...both(`${begun} se`),
    last: 'agent/pre-step',
  },
  {
    phase: 'while the prompt is assembled',
    arrange: ({ ctx, stop }) => {
      const late = async (): Promise<string> => {
        await nextTask()
        stop()
        return 'be brief'
      }
      ctx.systemPrompt.section({ name: 'late', order: 0, text: late })
    },
    ...both(`${begun} se`),
    last: 'system-prompt/assemble',
  },
  {
    phase: 'in agent/request',
    arrange: ({ ctx, stop }) =>
      void ctx.on('agent/request', async (_payload, next) => {
        await nextTask()
        stop()
        return next()
      }),
    ...both(`${begun} se`),
  },
  {
    phase: 'while the model is looked up',
    arrange: ({ ctx, stop, adapter }) => {
      class Slow extends LlmAdapter {
        stream = adapter.stream.bind(adapter)
        override async resolveModel(provider: string, id: string) {
          await nextTask()
          stop()
          return { provider, id, name: id }
        }
      }
      ctx.llm.registerAdapter(['slow'], new Slow())
      ctx.on('agent/request', async (_payload, next) => ({ ...(await next()), provider: 'slow' }))
    },
    ...both(`${begun} se`),
  },
  {
    phase: 'when the header is logged',
    arrange: ofType('request/header'),
    ...both(`${asked} se`),
    last: 'agent/request',
  },
  {
    phase: 'before the first chunk',
    script: [silentThenAborted],
    arrange: ({ ctx, stop }) =>
      void ctx.on('llm/stream', (_options, next) => {
        setImmediate(stop)
        return next()
      }),
    ...both(`${asked} se`),
    requests: 1,
  },
  {
    phase: 'in the middle of the text',
    script: ['hang'],
    arrange: at(isTextDelta),
    ...both(`${asked} ch am(interrupted) se`),
    requests: 1,
  },
  {
    phase: 'in the middle of a call that follows text',
    script: [wordsAndHalfACall],
    arrange: at(event => event.type === 'assistant/chunk' && event.data.chunk.type === 'tool-call-delta'),
    ...both(`${asked} ch am(interrupted) se`),
    requests: 1,
    check: ({ agent }) => {
      const message = agent.session.messages.at(-1)
      assert.deepEqual(message?.content, [{ type: 'text', text: 'I will greet' }])
    },
  },
  {
    phase: 'in the middle of a call and nothing else',
    script: [halfACall],
    arrange: at(event => event.type === 'assistant/chunk' && event.data.chunk.type === 'tool-call-delta'),
    ...both(`${asked} ch se`),
    requests: 1,
  },
  {
    phase: 'at the last chunk of an answer',
    script: [text('whole')],
    arrange: at(event => event.type === 'assistant/chunk' && event.data.chunk.type === 'finish'),
    ...both(`${asked} ch am(interrupted) se`),
    requests: 1,
  },
  {
    phase: 'at the chunk that says that the request failed',
    script: [[...text('half').slice(0, 3), ...fail('SERVER')]],
    arrange: at(event => event.type === 'assistant/chunk' && event.data.chunk.type === 'finish'),
    ...both(`${asked} ch se`),
    requests: 1,
    last: 'llm/stream',
  },
  {
    phase: 'while the recovery of a failed request is decided',
    script: [[...text('half').slice(0, 3), ...fail('SERVER')]],
    arrange: ({ ctx, stop }) =>
      void ctx.on('agent/request-error', async () => {
        await nextTask()
        stop()
        return { kind: 'retry' }
      }),
    ...both(`${asked} ch se`),
    requests: 1,
    last: 'llm/stream',
  },
  {
    phase: 'while a retry waits',
    script: [fail('SERVER')],
    arrange: ({ ctx, stop }) =>
      void ctx.on('agent/request-error', async ({ signal }) => {
        setImmediate(stop)
        await waiting({ signal }).catch(() => {})
        return undefined
      }),
    ...both(`${asked} ch se`),
    requests: 1,
  },
  {
    phase: 'when the message with the calls is logged',
    script: [twoCalls],
    arrange: ofType('assistant/message'),
    ...both(`${asked} ch am tc tr tc tr se`),
    requests: 1,
    check: ({ agent, ran }) => {
      assert.deepEqual(codesOf(agent), ['ABORTED_BEFORE_DISPATCH', 'ABORTED_BEFORE_DISPATCH'])
      assert.deepEqual(ran, [])
    },
  },
  {
    phase: 'when a call is logged',
    script: [twoCalls],
    arrange: ofType('tool/call'),
    ...both(`${asked} ch am tc tr tc tr se`),
    requests: 1,
    check: ({ agent, ran }) => {
      assert.deepEqual(codesOf(agent), ['ABORTED_BEFORE_DISPATCH', 'ABORTED_BEFORE_DISPATCH'])
      assert.deepEqual(ran, [])
    },
  },
  {
    phase: 'while policy looks at a call',
    script: [twoCalls],
    arrange: ({ ctx, stop }) =>
      void ctx.on('tools/pre-execute', async (_execution, next) => {
        await nextTask()
        stop()
        return next()
      }),
    ...both(`${asked} ch am tc tr tc tr se`),
    requests: 1,
    check: ({ agent, ran }) => {
      assert.deepEqual(codesOf(agent), ['ABORTED_BEFORE_DISPATCH', 'ABORTED_BEFORE_DISPATCH'])
      assert.deepEqual(ran, [])
    },
  },
  {
    phase: 'in the body of a tool that ignores it',
    script: [twoCalls],
    arrange: ({ ctx, stop }) =>
      void ctx.on('tools/execute', async (_execution, next) => {
        const result = await next()
        await nextTask()
        stop()
        return result
      }),
    ...both(`${asked} ch am tc tr tc tr se`),
    requests: 1,
    check: ({ agent, ran }) => {
      assert.deepEqual(codesOf(agent), ['ABORTED', 'ABORTED_BEFORE_DISPATCH'])
      assert.deepEqual(ran, ['greet'])
    },
  },
  {
    phase: 'after a body',
    script: [toolCall('greet', { name: 'a' })],
    arrange: ({ ctx, stop }) =>
      void ctx.on('tools/post-execute', async (_execution, _result, next) => {
        await nextTask()
        stop()
        return next()
      }),
    ...both(`${asked} ch am tc tr se`),
    requests: 1,
    check: ({ agent }) => assert.deepEqual(codesOf(agent), ['ABORTED']),
  },
  {
    phase: 'between two steps',
    script: [toolCall('greet', { name: 'a' })],
    arrange: ofType('step/end'),
    ...both(`${asked} ch am tc tr se`),
    requests: 1,
    check: ({ agent }) => assert.deepEqual(codesOf(agent), [undefined]),
  },
  {
    phase: 'at the end of the last step',
    script: [text('done')],
    arrange: ofType('step/end'),
    ...both(`${asked} ch am se`),
    requests: 1,
    last: 'llm/stream',
  },
  {
    phase: 'when the turn would stop',
    script: [text('done')],
    arrange: ({ ctx, agent, stop }) =>
      void ctx.once('agent/turn-stopping', async () => {
        await nextTask()
        agent.steer(say('one more'))
        stop()
      }),
    cancelled: `${asked} ch am se sp sp te:aborted{user}`,
    disposed: `${asked} ch am se sp te:aborted{disposed}`,
    requests: 1,
  },
  {
    phase: 'when the end of the turn is logged',
    script: [text('done')],
    arrange: ofType('turn/end'),
    cancelled: `${asked} ch am se te:completed`,
    disposed: `${asked} ch am se te:completed`,
    requests: 1,
  },
]

async function setup(row: Row, stopBy: 'cancel' | 'dispose') {
  const { ctx, adapter } = await createHarness(row.script ?? [text('never asked for')])
  const ran: string[] = []
  ctx.tools.register(
    defineTool({
      name: 'greet',
      description: 'Greets.',
      parameters: { name: { type: 'string', required: true } },
      execute: () => (ran.push('greet'), 'hello'),
    }),
  )
  const handle: AgentHandle = await ctx.agents.create({
    sessionId: SessionId('a'),
    agentOptions: { provider: 'mock', model: 'mock' },
  })
  const { agent } = handle
  const policies = ['none']
  const asking = ['agent/pre-step', 'system-prompt/assemble', 'agent/request', 'llm/stream'] as const
  for (const name of asking) {
    const wrap = (...args: unknown[]): unknown => {
      policies.push(name)
      return (args.at(-1) as () => unknown)()
    }
    ctx.on(name, wrap as never)
  }
  ctx.on('agent/turn-stopping', () => void policies.push('agent/turn-stopping'))
  const errors: unknown[] = []
  ctx.on('agent/error', ({ error }) => void errors.push(error))
  let stopped = false
  const stop = (): void => {
    if (stopped) return
    stopped = true
    if (stopBy === 'cancel') agent.cancel({ kind: 'user' })
    else void handle.dispose()
  }
  return { scene: { ctx, agent, adapter, ran, policies, stop }, handle, errors, wasStopped: () => stopped }
}

for (const stopBy of ['cancel', 'dispose'] as const) {
  describe(`${stopBy === 'cancel' ? 'cancelled' : 'disposed'}`, () => {
    for (const row of rows) {
      test(row.phase, async () => {
        const { scene, handle, errors, wasStopped } = await setup(row, stopBy)
        const { ctx, agent, adapter } = scene
        row.arrange(scene)
        if (row.act === undefined) agent.followup(say('go'))
        else row.act(scene)
        await agent.whenIdle()
        assert.equal(wasStopped(), true)
        assert.equal(outline(agent.session.events), stopBy === 'cancel' ? row.cancelled : row.disposed)
        assert.deepEqual(lintLog(agent.session.events), [])
        assert.deepEqual(errors, [])
        assert.equal(adapter.requests.length, row.requests ?? 0)
        if (row.last !== undefined) assert.equal(scene.policies.at(-1), row.last)
        row.check?.(scene)
        if (stopBy === 'dispose') {
          await handle.dispose()
          assert.equal(ctx.agents.get(agent.id), undefined)
          assert.equal(ctx.sessions.get(agent.id), undefined)
          assert.throws(() => agent.followup(say('too late')), { code: 'AGENT_DISPOSED' })
          return
        }
        if (adapter.remaining === 0) adapter.push(text('next'))
        agent.followup(say('and now?'))
        await agent.whenIdle()
        assert.match(outline(agent.session.events), / te:completed$/)
        assert.deepEqual(lintLog(agent.session.events), [])
      })
    }
  })
}
