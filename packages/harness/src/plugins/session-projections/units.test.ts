import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionEventMap, SessionHeader, StreamChunk, TokenUsage } from '@dsh/protocol'
import type {} from '../approval/events.ts'
import type {} from '../sandbox/events.ts'
import type {} from '../title/events.ts'
import { SessionStore } from '../../core/session/index.ts'
import { Context } from '../../kernel/index.ts'
import { answerFact, callFact, headerFact, logOf, resultFact, say, textFact } from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { sessionProjections } from './index.ts'
import type { SessionStats } from './index.ts'

const midnight = Date.UTC(2026, 10, 30)

/** A draft and the milliseconds since midnight at which it was logged. */
type Timed = readonly [ms: number, ...draft: Draft]

async function setup(drafts: readonly Timed[], header: Partial<SessionHeader> = {}) {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(sessionProjections)
  const events = logOf(...drafts.map(([, ...draft]) => draft as Draft)).map(
    (event, seq) => ({ ...event, time: midnight + (drafts[seq]?.[0] ?? 0) }) as SessionEvent,
  )
  const session = ctx.sessions.prepare(SessionId('s'), {
    seed: structuredClone(events),
    seedSource: 'persistence',
    meta: { ...header },
  })
  return { ctx, session, events, projections: ctx.sessionProjections }
}

async function statsOf(drafts: readonly Timed[], header: Partial<SessionHeader> = {}): Promise<SessionStats> {
  const { projections, session } = await setup(drafts, header)
  const { values, problems } = projections.snapshot(session)
  assert.equal(problems, undefined)
  return values['sessionStats'] as unknown as SessionStats
}

const chunk = (piece: StreamChunk): SessionEventMap['assistant/chunk'] => ({ turn: 1, step: 1, chunk: piece })
const usage = (counts: Partial<TokenUsage>): SessionEventMap['assistant/chunk'] =>
  chunk({ type: 'usage', usage: { inputTokens: 0, outputTokens: 0, ...counts } })
const failed = chunk({
  type: 'finish',
  reason: { kind: 'error', failure: { code: 'OVERLOADED', message: 'try later' } },
})
const retryStarted = { retryId: 'r', turn: 1, step: 1, retry: 1 }
const completed = { turn: 1, reason: { kind: 'completed' } } as const

/** One turn: a step with two tools, and one with the answer. */
const turn: readonly Timed[] = [
  [0, 'turn/start', { turn: 1 }],
  [0, 'user/message', say('go')],
  [0, 'step/start', { turn: 1, step: 1 }],
  [0, 'request/header', headerFact()],
  [100, 'assistant/chunk', textFact('a')],
  [200, 'assistant/chunk', textFact('b')],
  [300, 'assistant/chunk', usage({ inputTokens: 10, outputTokens: 20, cacheReadTokens: 5 })],
  [300, 'assistant/message', answerFact('ab', ['1', '2'])],
  [310, 'tool/call', callFact('1')],
  [310, 'tool/call', { ...callFact('2'), name: 'bash' }],
  [400, 'tool/start', { turn: 1, step: 1, callId: CallId('2') }],
  [410, 'tool/result', resultFact('1', 'ok')],
  [650, 'tool/result', resultFact('2', 'no', { error: { name: 'Error', code: 'X' } })],
  [650, 'step/end', { turn: 1, step: 1 }],
  [700, 'step/start', { turn: 1, step: 2 }],
  [750, 'assistant/chunk', textFact('c', { step: 2 })],
  [
    800,
    'assistant/message',
    { ...answerFact('c', [], { step: 2 }), usage: { inputTokens: 3, outputTokens: 4 } },
  ],
  [800, 'step/end', { turn: 1, step: 2 }],
  [800, 'turn/end', completed],
]

test('a turn is counted in steps, times and tokens, by tool, day and model', async () => {
  const { days, tools, ...sums } = await statsOf(turn)
  const tokens = {
    inputTokens: 13,
    outputTokens: 24,
    cacheReadTokens: 5,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  }
  assert.deepEqual(sums, {
    steps: 2,
    turns: 1,
    llmMs: 400,
    ttftMs: 150,
    ttftSteps: 2,
    decodeMs: 250,
    decodeTokens: 24,
    toolMs: 350,
    ...tokens,
  })
  assert.deepEqual(tools, { tool: { calls: 1, errors: 0, ms: 100 }, bash: { calls: 1, errors: 1, ms: 250 } })
  const counts = {
    turns: 1,
    steps: 2,
    requests: 2,
    failures: 0,
    llmMs: 400,
    toolMs: 350,
    toolCalls: 2,
    ...tokens,
  }
  assert.deepEqual(days, { '2026-11-30': { 'mock/mock': counts } })
})

test('the first token of the first attempt that had one counts, and waits between attempts do not', async () => {
  const stats = await statsOf([
    [0, 'step/start', { turn: 1, step: 1 }],
    [10, 'assistant/chunk', textFact('a')],
    [20, 'assistant/chunk', failed],
    [5000, 'llm/retry-started', retryStarted],
    [5100, 'assistant/chunk', textFact('b')],
    [5300, 'assistant/chunk', usage({ outputTokens: 7 })],
    [5300, 'assistant/message', answerFact('b')],
  ])
  assert.deepEqual([stats.ttftMs, stats.ttftSteps], [10, 1])
  assert.equal(stats.llmMs, 20 + 300)
  assert.deepEqual([stats.decodeMs, stats.decodeTokens], [200, 7])
  const [counts] = Object.values(stats.days['2026-11-30'] ?? {})
  assert.deepEqual([counts?.requests, counts?.failures], [2, 1])
})

test('what a title took is counted for the model that was asked', async () => {
  const route = { provider: 'small', model: 'tiny' }
  const request = { titleProvider: 'llm', messageSeqs: [1], route, system: '', messages: [], maxTokens: 9 }
  const stats = await statsOf([
    ...turn,
    [900, 'session/title-llm-request', request],
    [
      950,
      'session/title-llm-result',
      { requestSeq: turn.length, usage: { inputTokens: 7, outputTokens: 2 } },
    ],
  ])
  assert.deepEqual([stats.inputTokens, stats.outputTokens, stats.steps, stats.llmMs], [20, 26, 2, 400])
  const tiny = stats.days['2026-11-30']?.['small/tiny']
  assert.deepEqual([tiny?.requests, tiny?.inputTokens, tiny?.outputTokens, tiny?.turns], [1, 7, 2, 0])
})

test('a clock that runs backwards takes nothing away', async () => {
  const stats = await statsOf([
    [500, 'step/start', { turn: 1, step: 1 }],
    [400, 'assistant/chunk', textFact('a')],
    [300, 'assistant/message', { ...answerFact('a', ['1']), usage: { inputTokens: 1, outputTokens: 1 } }],
    [300, 'tool/call', callFact('1')],
    [200, 'tool/result', resultFact('1', 'ok')],
  ])
  const { ttftMs, llmMs, decodeMs, toolMs } = stats
  assert.deepEqual({ ttftMs, llmMs, decodeMs, toolMs }, { ttftMs: 0, llmMs: 0, decodeMs: 0, toolMs: 0 })
})

test('a turn without a closed step is none, and calls that it left open count nothing', async () => {
  const stats = await statsOf([
    [0, 'turn/start', { turn: 1 }],
    [0, 'step/start', { turn: 1, step: 1 }],
    [5, 'tool/call', callFact('1')],
    [10, 'turn/end', { turn: 1, reason: { kind: 'interrupted' } }],
    [20, 'turn/start', { turn: 2 }],
    [30, 'tool/result', resultFact('1', 'late')],
    [40, 'turn/end', { turn: 2, reason: { kind: 'completed' } }],
  ])
  assert.deepEqual([stats.turns, stats.steps, stats.toolMs, stats.tools], [0, 0, 0, {}])
})

test('what a fork inherited is its parent’s, but the model it asks is known', async () => {
  const stats = await statsOf([...turn, [900, 'step/end', { turn: 2, step: 1 }]], {
    parentSession: SessionId('parent'),
    seedLength: turn.length,
  })
  assert.deepEqual([stats.turns, stats.steps, stats.outputTokens], [0, 1, 0])
  assert.deepEqual(Object.keys(stats.days['2026-11-30'] ?? {}), ['mock/mock'])
})

test('tool names that a model makes up do not let the state grow, and none is special', async () => {
  const names = ['__proto__', 'constructor', ...Array.from({ length: 150 }, (_, index) => `made-up-${index}`)]
  const stats = await statsOf(
    names.flatMap((name, at): readonly Timed[] => [
      [0, 'tool/call', { ...callFact(`${at}`), name }],
      [1, 'tool/result', resultFact(`${at}`, 'no such tool')],
    ]),
  )
  assert.equal(Object.keys(stats.tools).length, 101)
  assert.deepEqual(Object.getOwnPropertyDescriptor(stats.tools, '__proto__')?.value, {
    calls: 1,
    errors: 0,
    ms: 1,
  })
  assert.equal(stats.tools['(others)']?.calls, 52)
})

test('a time that no calendar has is counted on the last day there is', async () => {
  const stats = await statsOf([[Number.MAX_SAFE_INTEGER - midnight, 'step/end', { turn: 1, step: 1 }]])
  assert.deepEqual(Object.keys(stats.days), ['+275760-09-13T00:00:00.000Z'.split('T')[0]])
})

test('each event shows in its value right after it', async () => {
  const { projections, session } = await setup([
    [0, 'user/message', { ...say('context'), source: { kind: 'plugin', plugin: 'x' } }],
    [5, 'user/message', say('go')],
    [6, 'request/header', headerFact()],
    [7, 'sandbox/mode', { mode: 'read-only' }],
    [8, 'approval/policy', { policy: 'never' }],
    [9, 'todo/write', { todos: [{ content: 'look', status: 'pending' }] }],
    [10, 'turn/start', { turn: 1 }],
    [11, 'session/archived', { archived: true }],
    [12, 'turn/start', { turn: 2 }],
  ])
  const shown = (seq: number, key: string): unknown => projections.at(session, seq).values[key]
  assert.deepEqual(shown(0, 'sessionListMetadata'), { blank: true, lastPromptAt: null, archived: false })
  const prompted = { blank: false, lastPromptAt: midnight + 5 }
  assert.deepEqual(shown(1, 'sessionListMetadata'), { ...prompted, archived: false })
  assert.deepEqual(shown(1, 'route'), null)
  assert.deepEqual(shown(2, 'route'), { provider: 'mock', model: 'mock', reasoningEffort: null })
  assert.deepEqual(shown(2, 'permissions'), { mode: null, policy: null })
  assert.deepEqual(shown(3, 'permissions'), { mode: 'read-only', policy: null })
  assert.deepEqual(shown(4, 'permissions'), { mode: 'read-only', policy: 'never' })
  assert.deepEqual(shown(5, 'todo'), [{ content: 'look', status: 'pending' }])
  assert.deepEqual(shown(6, 'turn'), { openTurn: 1, openStep: null, lastTurn: 1 })
  assert.deepEqual(shown(7, 'sessionListMetadata'), { ...prompted, archived: true })
  assert.deepEqual(shown(8, 'sessionListMetadata'), { ...prompted, archived: false })
  assert.deepEqual(shown(6, 'tokenUsage'), {
    total: { inputTokens: 0, outputTokens: 0 },
    step: { inputTokens: 0, outputTokens: 0 },
  })
})

test('every state is one again after it was stored as JSON, and goes on as if it never had been', async () => {
  const { projections, session, events } = await setup(turn)
  for (const unit of projections.units) {
    const { fold } = unit
    const types: readonly string[] = fold.types
    const apply = (state: unknown, event: SessionEvent): unknown =>
      types.includes(event.type) ? fold.apply(state, event as never) : state
    for (let seq = 0; seq <= events.length; seq++) {
      const stored: unknown = JSON.parse(JSON.stringify(session.fold(fold, { before: seq })))
      assert.ok(unit.isState(stored), `${unit.key} before ${seq}`)
      assert.deepEqual(events.slice(seq).reduce(apply, stored), session.fold(fold, { before: events.length }))
    }
  }
})

test('what is no state is not taken for one', async () => {
  const { projections } = await setup([])
  for (const unit of projections.units) {
    const wrong = [undefined, 'text', 7, {}, [{}], { stats: {} }].filter(value => unit.isState(value))
    assert.deepEqual(wrong, [], unit.key)
  }
})
