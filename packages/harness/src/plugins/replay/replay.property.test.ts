import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  assert as check,
  asyncProperty,
  array,
  constantFrom,
  nat,
  oneof,
  record,
  tuple,
  constant,
} from 'fast-check'
import { SessionId } from '@dsh/protocol'
import type { StreamChunk } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { createUserMessage } from '../../core/llm/index.ts'
import type { GenerateOptions } from '../../core/llm/index.ts'
import { defineTool } from '../../core/tools/index.ts'
import type { Context } from '../../kernel/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { fail, ScriptedAdapter, text, toolCalls } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { retry } from '../retry/index.ts'
import { rebuildRequest, requestsOf } from '../time-travel/index.ts'
import { differenceLines, readRecording, recordSession, runRecording, writeRecording } from './index.ts'

/** What one request meets. */
const answers = oneof(
  record({ kind: constantFrom('text', 'refuse', 'fail', 'cut', 'silent', 'long', 'loud') }),
  record({
    kind: constant('calls' as const),
    tools: array(tuple(constantFrom('look', 'touch', 'gone', 'over', 'stop', 'bad'), nat(2)), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
)
const meanwhile = constantFrom('nothing', 'steer', 'inject', 'followup', 'tool', 'section')
const program = array(tuple(answers, meanwhile), { minLength: 1, maxLength: 12 })
type Program = readonly (readonly [
  { readonly kind: string; readonly tools?: readonly (readonly [string, number])[] },
  string,
])[]

interface Place {
  readonly ctx: Context
  readonly agent: Agent
  readonly count: () => number
}

function mountTools(ctx: Context): void {
  for (const name of ['look', 'touch', 'over', 'stop'])
    ctx.tools.register(
      defineTool({
        name,
        description: `Does ${name}.`,
        parameters: { n: { type: 'number' } },
        isConcurrencySafe: () => name === 'look',
        execute: async ({ n }, exec) => {
          await Promise.resolve()
          if (name === 'over') exec.concludeTurn()
          if (name === 'stop') exec.agent?.cancel({ kind: 'user' }, { keepInbox: true })
          if (n === 2) throw new Error('it is 2')
          return `${name} ${n}`
        },
      }),
    )
}

function entryOf([answer, event]: Program[number], place: Place): ScriptEntry {
  const { agent } = place
  const stop = (): void => agent.cancel({ kind: 'user' }, { keepInbox: true })
  return async function* (): AsyncGenerator<StreamChunk> {
    happen(event, place)
    switch (answer.kind) {
      case 'calls':
        yield* callsOf(answer.tools ?? [], place.count())
        return
      case 'fail':
        yield* fail('SERVER')
        return
      case 'refuse':
        yield* fail('AUTH')
        return
      case 'cut':
        yield* text('half').slice(0, 3)
        stop()
        yield* text('half').slice(3)
        return
      case 'silent':
        stop()
        return
      case 'long':
        yield* text('too long').slice(0, -1)
        yield { type: 'finish', reason: { kind: 'max-tokens' } }
        return
      case 'loud':
        yield { type: 'finish', reason: { kind: 'stop' } }
        return
      default:
        yield* text(`answer ${place.count()}`)
    }
  }
}

function callsOf(tools: readonly (readonly [string, number])[], count: number): readonly StreamChunk[] {
  return toolCalls(
    tools.map(([name, n], index) => ({
      name: name === 'bad' ? 'look' : name,
      args: name === 'bad' ? '{"n":' : { n },
      id: `call_${count}_${index}`,
    })),
  )
}

function happen(event: string, { ctx, agent, count }: Place): void {
  const name = `${event}-${count()}`
  if (event === 'steer') agent.steer(say(name))
  if (event === 'followup') agent.followup(say(name))
  if (event === 'inject') {
    const source = { kind: 'plugin', plugin: name, form: 'notice', summary: name } as const
    agent.inject(createUserMessage({ content: [{ type: 'text', text: name }], source }))
  }
  if (event === 'tool')
    ctx.tools.register(defineTool({ name, description: name, parameters: {}, execute: () => '' }))
  if (event === 'section') ctx.systemPrompt.section({ name, order: 5, text: name })
}

/** Runs the program in as many turns as it takes, with a retry for each SERVER failure. */
async function sessionOf(steps: Program) {
  const { ctx } = await createHarness()
  mountTools(ctx)
  await ctx.plugin(retry)
  const policy = { initialDelayMs: 1, maxDelayMs: 1 }
  const adapter = Object.assign(new ScriptedAdapter(), { providerRetryPolicy: () => policy })
  ctx.llm.registerAdapter(['quick'], adapter)
  const route = { provider: 'quick', model: 'm' }
  const agent = ctx.agentLoop.create(SessionId('s'), route, { cwd: '/srv/app' })
  let n = 0
  const place = { ctx, agent, count: () => n++ }
  adapter.push(...steps.map(step => entryOf(step, place)))
  for (let turn = 0; adapter.remaining > 0 && turn < 20; turn++) {
    agent.followup(say(`turn ${turn}`))
    await agent.whenIdle()
  }
  return { ctx, session: agent.session, sent: adapter.requests }
}

function bodyOf(options: GenerateOptions | undefined): string {
  const { signal: _, ...body } = options ?? ({} as GenerateOptions)
  return JSON.stringify(body)
}

test('whatever happens in a session, its requests are rebuilt as they were sent, and asked again by its recording', async () => {
  const property = asyncProperty(program, async steps => {
    const { ctx, session, sent } = await sessionOf(steps)
    const requests = requestsOf(session)
    assert.deepEqual(
      requests.map(({ seq }) => bodyOf(rebuildRequest(session, seq)?.request)),
      sent.map(bodyOf),
    )
    const text = writeRecording(recordSession(session))
    const bare = await createHarness()
    const report = await runRecording(readRecording(text, 'it'), {
      ctx: bare.ctx,
      workspace: '/srv/other',
      standIns: true,
    })
    await Promise.all([ctx.dispose(), bare.ctx.dispose()])
    assert.deepEqual(report.difference === undefined ? [] : differenceLines(report.difference), [])
    assert.equal(report.made.length, requests.length)
  })
  await check(property, { numRuns: 18, seed: 3 })
})
