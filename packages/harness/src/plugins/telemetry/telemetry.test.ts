import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { trace } from '@opentelemetry/api'
import { CallId, SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader, StreamChunk, TokenUsage } from '@dsh/protocol'
import type { Session } from '../../core/session/index.ts'
import {
  answerFact,
  callFact,
  createHarness,
  headerFact,
  logOf,
  resultFact,
  say,
  textFact,
} from '../../testing/index.ts'
import type { Draft } from '../../testing/index.ts'
import { fail, text, toolCall } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import type {} from '../title/events.ts'
import { deriveSpans, telemetry } from './index.ts'
import type { SpanDescription } from './index.ts'

const header: SessionHeader = { version: 0, id: SessionId('s'), createdAt: 0, cwd: '/srv/secret-folder' }

/** A draft and its time. */
type Timed = readonly [ms: number, ...draft: Draft]

function logAt(...drafts: readonly Timed[]): SessionEvent[] {
  const events = logOf(...drafts.map(([, ...draft]) => draft as Draft))
  return events.map((event, at) => ({ ...event, time: drafts[at]?.[0] ?? 0 }) as SessionEvent)
}

const chunk = (piece: StreamChunk) => ({ turn: 1, step: 1, chunk: piece })
const usage = (counts: TokenUsage) => chunk({ type: 'usage', usage: counts })
const finish = (kind: 'stop' | 'tool-calls') => chunk({ type: 'finish', reason: { kind } })
const completed = { turn: 1, reason: { kind: 'completed' } } as const

const turn = logAt(
  [100, 'turn/start', { turn: 1 }],
  [100, 'user/message', say('a secret question')],
  [110, 'step/start', { turn: 1, step: 1 }],
  [
    110,
    'request/header',
    { header: { config: { provider: 'deepseek', model: 'flash', maxTokens: 9 } }, reason: 'initial' },
  ],
  [150, 'assistant/chunk', textFact('a secret answer')],
  [
    180,
    'assistant/chunk',
    usage({ inputTokens: 10, outputTokens: 20, cacheReadTokens: 5, reasoningTokens: 7 }),
  ],
  [190, 'assistant/chunk', finish('tool-calls')],
  [190, 'assistant/message', answerFact('a secret answer', ['1'])],
  [200, 'tool/call', { ...callFact('1'), name: 'bash', arguments: '{"command":"secret"}' }],
  [250, 'tool/start', { turn: 1, step: 1, callId: CallId('1') }],
  [
    290,
    'tool/result',
    resultFact('1', 'secret output', { error: { name: 'E', code: 'EXIT', reason: 'secret' } }),
  ],
  [300, 'step/end', { turn: 1, step: 1 }],
  [310, 'turn/end', completed],
)

const root = { id: 's#0', name: 'invoke_agent dsh', startTime: 100 }

test('a turn is a trace of its requests and tools, without a word of what was said', () => {
  const spans = deriveSpans(turn, header)
  const place = { 'gen_ai.conversation.id': 's', 'dsh.turn': 1 }
  const route = { 'gen_ai.provider.name': 'deepseek', 'gen_ai.request.model': 'flash' }
  assert.deepEqual(spans, [
    {
      id: 's#2',
      rootId: 's#0',
      parent: root,
      name: 'chat flash',
      kind: 'client',
      startTime: 110,
      endTime: 190,
      attributes: {
        'gen_ai.operation.name': 'chat',
        ...route,
        'gen_ai.request.max_tokens': 9,
        'gen_ai.response.finish_reasons': ['tool_calls'],
        'gen_ai.usage.input_tokens': 15,
        'gen_ai.usage.output_tokens': 20,
        'gen_ai.usage.cache_read.input_tokens': 5,
        'dsh.usage.reasoning_tokens': 7,
        ...place,
        'dsh.seq.start': 2,
        'dsh.seq.end': 7,
        'dsh.step': 1,
      },
    },
    {
      id: 's#8',
      rootId: 's#0',
      parent: root,
      name: 'execute_tool bash',
      kind: 'internal',
      startTime: 250,
      endTime: 290,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'bash',
        'gen_ai.tool.call.id': '1',
        'gen_ai.tool.type': 'function',
        ...place,
        'dsh.seq.start': 8,
        'dsh.seq.end': 10,
        'dsh.step': 1,
        'error.type': 'EXIT',
      },
      error: 'EXIT',
    },
    {
      id: 's#0',
      rootId: 's#0',
      name: 'invoke_agent dsh',
      kind: 'internal',
      startTime: 100,
      endTime: 310,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': 'dsh',
        ...route,
        ...place,
        'dsh.seq.start': 0,
        'dsh.seq.end': 12,
        'dsh.turn.end': 'completed',
      },
    },
  ])
  assert.doesNotMatch(JSON.stringify(spans), /secret/)
})

test('each attempt is a request, and a failure is told by its code alone', () => {
  const failure = { code: 'OVERLOADED', message: 'key sk-secret is busy' }
  const spans = deriveSpans(
    logAt(
      [0, 'turn/start', { turn: 1 }],
      [0, 'step/start', { turn: 1, step: 1 }],
      [0, 'request/header', headerFact()],
      [5, 'assistant/chunk', chunk({ type: 'finish', reason: { kind: 'error', failure } })],
      [50, 'llm/retry-started', { retryId: 'r', turn: 1, step: 1, retry: 1 }],
      [60, 'assistant/chunk', textFact('x')],
      [70, 'step/end', { turn: 1, step: 1 }],
      [70, 'turn/end', { turn: 1, reason: { kind: 'error', error: failure } }],
    ),
    header,
  )
  assert.deepEqual(
    spans.map(({ name, startTime, endTime, error }) => [name, startTime, endTime, error]),
    [
      ['chat mock', 0, 5, 'OVERLOADED'],
      ['chat mock', 50, 70, 'interrupted'],
      ['invoke_agent dsh', 0, 70, 'OVERLOADED'],
    ],
  )
  assert.doesNotMatch(JSON.stringify(spans), /secret/)
})

test('what a fork inherited is its parent’s, and a clock that runs backwards gives no negative span', () => {
  const fork = { ...header, parentSession: SessionId('p'), seedLength: turn.length }
  const own = logAt(
    [50, 'turn/start', { turn: 2 }],
    [40, 'turn/end', { turn: 2, reason: { kind: 'completed' } }],
  )
  const spans = deriveSpans([...turn, ...own.map((event, at) => ({ ...event, seq: turn.length + at }))], fork)
  assert.deepEqual(
    spans.map(({ id, startTime, endTime, attributes }) => [
      id,
      startTime,
      endTime,
      attributes['dsh.session.parent'],
      attributes['gen_ai.request.model'],
    ]),
    [['s#13', 50, 50, 'p', 'flash']],
  )
})

test('a request for a title stands beside the turns', () => {
  const spans = deriveSpans(
    logAt(
      [
        10,
        'session/title-llm-request',
        {
          titleProvider: 'llm',
          messageSeqs: [0],
          route: { provider: 'p', model: 'small' },
          system: 'secret',
          messages: [],
          maxTokens: 9,
        },
      ],
      [
        20,
        'session/title-llm-result',
        { requestSeq: 0, problem: 'secret', usage: { inputTokens: 1, outputTokens: 2 } },
      ],
      [20, 'session/title-llm-result', { requestSeq: 0 }],
    ),
    header,
  )
  assert.equal(spans.length, 1)
  assert.deepEqual(
    [
      spans[0]?.name,
      spans[0]?.error,
      spans[0]?.attributes['dsh.purpose'],
      spans[0]?.attributes['gen_ai.usage.output_tokens'],
    ],
    ['chat small', 'title_refused', 'session-title', 2],
  )
  assert.doesNotMatch(JSON.stringify(spans), /secret/)
})

/** A collector that keeps what it is sent. */
async function collector(t: TestContext, answer: { status: number } | 'never' = { status: 200 }) {
  const received: { headers: Record<string, unknown>; body: OtlpBody; path: string | undefined }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () => {
      received.push({ headers: request.headers, body: JSON.parse(body) as OtlpBody, path: request.url })
      if (answer !== 'never') response.writeHead(answer.status).end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as { port: number }
  const spans = () =>
    received.flatMap(({ body }) =>
      body.resourceSpans.flatMap(each => each.scopeSpans.flatMap(scope => scope.spans)),
    )
  return { endpoint: `http://127.0.0.1:${port}`, received, spans }
}

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: unknown }[]
  readonly status: object
}
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: unknown
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

async function setup(script: readonly ScriptEntry[], config: object) {
  const harness = await createHarness(script)
  const failures: string[] = []
  harness.ctx.on('internal/error', error => failures.push(String(error)))
  const plugin = harness.ctx.plugin(telemetry, config)
  await plugin
  return { ...harness, plugin, failures }
}

async function runTurn(
  { agent }: Awaited<ReturnType<typeof setup>>,
  prompt = 'a secret question',
): Promise<Session> {
  const worker = agent()
  worker.followup(say(prompt))
  await worker.whenIdle()
  return worker.session
}

test('a collector gets the spans of the log, once, when the program ends', async t => {
  const { endpoint, received, spans } = await collector(t)
  const harness = await setup([toolCall('none', { secret: 1 }), text('a secret answer')], {
    endpoint,
    headers: { authorization: 'Bearer x' },
  })
  const session = await runTurn(harness)
  await harness.plugin.dispose()
  const expected = deriveSpans(session.events, session.header)
  assert.deepEqual(
    spans().map(({ name }) => name),
    expected.map(({ name }) => name),
  )
  assert.deepEqual(
    received.map(({ path }) => path),
    ['/v1/traces'],
  )
  assert.equal(received[0]?.headers['authorization'], 'Bearer x')
  assert.doesNotMatch(JSON.stringify(received), /secret/)
  assert.deepEqual(received[0]?.body.resourceSpans[0]?.resource, {
    attributes: [{ key: 'service.name', value: { stringValue: 'dsh' } }],
  })
  const last = spans().at(-1)
  const [first] = spans()
  assert.equal(first?.parentSpanId, last?.spanId)
  assert.equal(new Set(spans().map(({ traceId }) => traceId)).size, 1)
  assert.match(`${last?.traceId} ${last?.spanId}`, /^[0-9a-f]{32} [0-9a-f]{16}$/)
  assert.equal(last?.endTimeUnixNano, `${expected.at(-1)?.endTime}000000`)
  assert.deepEqual([first?.kind, last?.kind], [3, 1])
  const value = (key: string) => first?.attributes.find(each => each.key === key)?.value
  assert.deepEqual(value('gen_ai.usage.output_tokens'), { intValue: '1' })
  assert.deepEqual(value('gen_ai.response.finish_reasons'), {
    arrayValue: { values: [{ stringValue: 'tool_calls' }] },
  })
  assert.deepEqual(harness.failures, [])
})

test('a failed request is an error to the collector', async t => {
  const { endpoint, spans } = await collector(t)
  const harness = await setup([fail('AUTH')], { endpoint })
  await runTurn(harness)
  await harness.plugin.dispose()
  assert.deepEqual(
    spans().map(({ status }) => status),
    [
      { code: 2, message: 'AUTH' },
      { code: 2, message: 'AUTH' },
    ],
  )
})

test('a rule takes out what must not leave, and one that fails keeps the span back', async t => {
  const { endpoint, spans } = await collector(t)
  const harness = await setup([text('a'), text('b')], { endpoint })
  harness.ctx.on('telemetry/span', (span, next) => {
    if (span.kind === 'client') throw new Error('the rule is broken')
    const left = next()
    return left === undefined ? undefined : { ...left, attributes: { kept: true } }
  })
  const session = await runTurn(harness)
  const before = JSON.stringify(session.events)
  await harness.plugin.dispose()
  assert.deepEqual(
    spans().map(({ name, attributes }) => [name, attributes]),
    [['invoke_agent dsh', [{ key: 'kept', value: { boolValue: true } }]]],
  )
  assert.deepEqual(harness.failures, ['Error: the rule is broken'])
  assert.equal(JSON.stringify(session.events), before)
})

test('a collector that refuses, or is not there, costs the spans and nothing else', async t => {
  const refusing = await collector(t, { status: 503 })
  const first = await setup([text('a')], { endpoint: refusing.endpoint })
  await runTurn(first)
  await first.plugin.dispose()
  assert.equal(refusing.received.length, 1)
  assert.deepEqual(first.failures, ['Error: 2 spans are lost: the collector answered 503'])
  const gone = await setup([text('a')], { endpoint: 'http://127.0.0.1:1' })
  await runTurn(gone)
  await gone.plugin.dispose()
  assert.match(gone.failures.join(), /^Error: 2 spans are lost: /)
})

test('the end waits no longer than it was told to', async t => {
  const silent = await collector(t, 'never')
  const harness = await setup([text('a')], { endpoint: silent.endpoint, shutdownTimeoutMs: 20 })
  await runTurn(harness)
  await harness.plugin.dispose()
  assert.deepEqual(harness.failures, ['Error: 2 spans are lost: the program ended after 20 ms'])
})

test('without a collector the SDK of the process gets the spans, parents before children', async t => {
  const ended: {
    name: string
    parent: string | undefined
    options: unknown
    attributes: unknown
    status: unknown
    time: unknown
  }[] = []
  let flushed = 0
  const provider = {
    getTracer: (scope: string) => ({
      startSpan(name: string, options: unknown, context: Parameters<typeof trace.getSpan>[0]) {
        const parent = (trace.getSpan(context) as { name?: string } | undefined)?.name
        const span = {
          name,
          attributes: {},
          status: undefined as unknown,
          setAttributes(attributes: object) {
            span.attributes = attributes
            return span
          },
          setStatus(status: unknown) {
            span.status = status
            return span
          },
          end: (time: unknown) =>
            ended.push({
              name: `${scope} ${name}`,
              parent,
              options,
              attributes: span.attributes,
              status: span.status,
              time,
            }),
        }
        return span
      },
    }),
    forceFlush: () => Promise.resolve(void (flushed += 1)),
  }
  assert.ok(trace.setGlobalTracerProvider(provider as never))
  t.after(() => trace.disable())
  const harness = await setup([fail('AUTH')], {})
  const session = await runTurn(harness)
  await harness.plugin.dispose()
  const expected = deriveSpans(session.events, session.header)
  assert.deepEqual(
    ended,
    expected.map(span => ({
      name: `dsh ${span.name}`,
      parent: span.parent?.name,
      options: { startTime: span.startTime, kind: span.kind === 'client' ? 2 : 0 },
      attributes: span.attributes,
      status: { code: 2, message: 'AUTH' },
      time: span.endTime,
    })),
  )
  assert.equal(flushed, 1)
})

test('a session that was there before is told from its next turn on, and a disabled plugin tells nothing', async t => {
  const { endpoint, spans } = await collector(t)
  const harness = await createHarness([text('a'), text('b')])
  const worker = harness.agent()
  worker.followup(say('one'))
  await worker.whenIdle()
  await harness.ctx.plugin(telemetry, { endpoint, disabled: true })
  const plugin = harness.ctx.plugin(telemetry, { endpoint })
  await plugin
  worker.followup(say('two'))
  await worker.whenIdle()
  await plugin.dispose()
  const expected: readonly SpanDescription[] = deriveSpans(worker.session.events, worker.session.header)
  assert.deepEqual(
    spans().map(({ name }) => name),
    expected.slice(2).map(({ name }) => name),
  )
})

test('an endpoint that is no address of the web is refused', async () => {
  const { ctx } = await createHarness()
  for (const endpoint of ['localhost:4318', 'file:///tmp/x', '']) {
    await assert.rejects(async () => {
      await ctx.plugin(telemetry, { endpoint })
    }, /endpoint.*it is no http or https address/)
  }
})
