import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { SessionStore } from '../../src/core/session/index.ts'
import type { Session } from '../../src/core/session/index.ts'
import { Context } from '../../src/kernel/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'

const root = mkdtempSync(join(tmpdir(), 'dsh-at-rest-'))
after(() => rmSync(root, { recursive: true, force: true }))

type Append = (type: string, data: unknown, intent?: unknown) => SessionEvent

/** An event as its writer means it; a place on the surface is chosen when the surface is known. */
interface Draft {
  readonly type: string
  readonly data: unknown
  readonly ignorable: boolean
  readonly place: number
  readonly sources: number
}

const half = '\ud83d'
const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      half,
      `${half}x`,
      '\ude00',
      '\u0000',
      '\u2028"\\',
      '__proto__',
      '\ufeff',
      '\ud83d\\ude00',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('x'.repeat(70_000), '漢'.repeat(30_000), `${'y'.repeat(66_000)}${half}`),
  },
)
const name = text.filter(value => value !== '')
const json = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' })
const count = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constantFrom(Number.MAX_SAFE_INTEGER, 0, 1.5))
const turn = { turn: fc.integer({ min: 1, max: 3 }) }
const step = { ...turn, step: fc.integer({ min: 1, max: 3 }) }
const source = fc.oneof(
  fc.constant({ kind: 'user' }),
  fc.record({ kind: fc.constant('plugin'), plugin: name, extra: json }),
  fc.record({ kind: name }),
)
const block = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'reasoning'), text }),
  fc.record({ type: fc.constant('made-up'), inside: json }),
  fc.record({
    type: fc.constant('image'),
    attachment: fc.record({ sha256: fc.constant('0'.repeat(64)), mediaType: text, bytes: count }),
  }),
)
const call = fc.record({ type: fc.constant('tool-call'), id: name, name: text, arguments: text })
const userMessage = fc.record({
  id: name,
  role: fc.constant('user'),
  content: fc.array(block, { maxLength: 3 }),
  source,
})
const usage = fc.record({ inputTokens: count, outputTokens: count, extra: json })
const failure = fc.record({ message: text, code: name, status: fc.constantFrom(429, 503) })
const modelSource = fc.record(
  { kind: fc.constant('model'), provider: name, model: name, replayState: fc.record({ response: json }) },
  { requiredKeys: ['kind', 'provider', 'model'] },
)
const result = fc
  .record({ id: name, callId: name, content: fc.array(block, { maxLength: 2 }), isError: fc.boolean() })
  .map(({ id, callId, content, isError }) => ({
    id,
    role: 'user',
    content: [{ type: 'tool-result', toolCallId: callId, content, isError }],
    source: { kind: 'tool', callId },
  }))
const chunk = fc.oneof(
  fc.record({
    type: fc.constant('block-start'),
    index: count,
    blockType: fc.constantFrom('text', 'tool-call'),
  }),
  fc.record({ type: fc.constantFrom('text-delta', 'reasoning-delta'), index: count, text }),
  fc.record(
    { type: fc.constant('tool-call-delta'), index: count, id: name, name: text, argumentsDelta: text },
    { requiredKeys: ['type', 'index', 'id', 'argumentsDelta'] },
  ),
  fc.record({ type: fc.constant('block-end'), index: count, block: fc.oneof(block, call) }),
  fc.record({ type: fc.constant('usage'), usage }),
  fc.record({
    type: fc.constant('finish'),
    reason: fc.oneof(
      fc.record({ kind: fc.constantFrom('stop', 'tool-calls', 'max-tokens') }),
      fc.record({ kind: fc.constantFrom('error', 'aborted'), failure }),
    ),
  }),
)

const dataOf: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  'turn/start': fc.record(turn),
  'turn/end': fc.record({
    ...turn,
    reason: fc.oneof(
      fc.record({ kind: fc.constantFrom('completed', 'blocked', 'max-tokens', 'made-up') }),
      fc.record({
        kind: fc.constant('aborted'),
        reason: fc.record({ kind: fc.constant('hook'), reason: text }),
      }),
      fc.record({ kind: fc.constant('error'), error: failure }),
    ),
  }),
  'step/start': fc.record(step),
  'step/end': fc.record(step),
  'user/message': userMessage,
  'assistant/chunk': fc.record({ ...step, chunk }),
  'assistant/message': fc.record(
    {
      ...step,
      message: fc.record({
        id: name,
        role: fc.constant('assistant'),
        content: fc.array(fc.oneof(block, call), { maxLength: 3 }),
        source: modelSource,
      }),
      usage,
      interrupted: fc.constant(true),
      truncatedToolCalls: count,
    },
    { requiredKeys: ['turn', 'step', 'message'] },
  ),
  'tool/call': fc.record({ ...step, callId: name, name: text, arguments: text }),
  'tool/start': fc.record({ ...step, callId: name }),
  'tool/result': fc.record(
    { ...step, message: result, error: fc.record({ name, code: name, reason: text }), meta: json },
    { requiredKeys: ['turn', 'step', 'message'] },
  ),
  'todo/write': fc.record({
    todos: fc.array(
      fc.record({ content: text, status: fc.constantFrom('pending', 'in_progress', 'completed') }),
      { maxLength: 3 },
    ),
  }),
  'request/header': fc.record({
    header: fc.record(
      {
        config: fc.record({
          provider: name,
          model: name,
          temperature: fc.double({ noNaN: true }),
          extra: json,
        }),
        system: text,
        tools: fc.array(fc.record({ name: text, description: text, parameters: json }), { maxLength: 2 }),
      },
      { requiredKeys: ['config'] },
    ),
    reason: fc.constantFrom('initial', 'resume', 'change'),
  }),
  'request/context': fc.record({ provider: name, model: name, contextWindow: count }),
  'agent/inbox/spliced': fc.record(
    {
      target: fc.constantFrom('next-turn', 'next-step'),
      start: fc.nat(3),
      removedCount: fc.integer({ min: 1, max: 3 }),
      inserted: fc.array(userMessage, { maxLength: 2 }),
      outcome: fc.constant('canceled'),
    },
    { requiredKeys: ['target', 'start', 'inserted'] },
  ),
  'command/run': fc.record({ commandId: name, name, args: text, source: fc.constant({ kind: 'user' }) }),
  'command/done': fc.record({ commandId: name, kind: fc.constantFrom('success', 'error'), text }),
  'shelf/note': fc.record({ note: json }),
  'shelf/must': fc.record({ must: text, __proto__x: json }),
  // As a parser gives it: a key of its own, not a prototype.
  'ghost/seen': fc.oneof(
    json,
    json.map(value => JSON.parse(`{"__proto__":${JSON.stringify(value)}}`) as unknown),
  ),
}

const draft: fc.Arbitrary<Draft> = fc.constantFrom(...Object.keys(dataOf)).chain(type =>
  fc.record({
    type: fc.constant(type),
    data: dataOf[type] ?? fc.constant(undefined),
    ignorable: fc.boolean(),
    place: fc.nat(9),
    sources: fc.nat(9),
  }),
)

/** Declares 'shelf/note', which may be skipped, and 'shelf/must', which may not. Nobody declares 'ghost/seen'. */
const shelf = {
  name: 'shelf',
  inject: ['sessions'],
  apply(ctx: Context) {
    const hasKey = (key: string) => (data: unknown) => {
      if (!Object.hasOwn(data as object, key)) throw new Error(`no ${key}`)
    }
    ctx.sessions.registerEventType({ type: 'shelf/note' as never, ignorable: true, validate: hasKey('note') })
    ctx.sessions.registerEventType({ type: 'shelf/must' as never, validate: hasKey('must') })
  },
}

async function open(plugins: readonly object[] = [shelf]): Promise<Context> {
  const ctx = new Context()
  await ctx.plugin(SessionStore)
  await ctx.plugin(storeJsonl, { root })
  for (const plugin of plugins) await ctx.plugin(plugin as typeof shelf)
  return ctx
}

const surfaceTypes = new Set(['user/message', 'assistant/message', 'tool/result'])

function intentOf(session: Session, { type, ignorable, place, sources }: Draft): object {
  const mark = ignorable ? { ignorable: true } : {}
  if (!surfaceTypes.has(type)) return mark
  const { nodes } = session.surface
  const target = nodes[place]
  if (place < 3 && target !== undefined) {
    const end = nodes[Math.min(nodes.length - 1, place + (sources % 2))] ?? target
    const sourceEventSeqs = Array.from({ length: session.length }, (_, seq) => seq)
    return { ...mark, surfaceOp: { op: 'replace', start: target, end }, sourceEventSeqs }
  }
  if (sources === 0 || session.length === 0) return { ...mark, surfaceOp: 'append' }
  const from = Math.max(0, session.length - sources)
  return {
    ...mark,
    surfaceOp: 'append',
    sourceEventSeqs: Array.from({ length: session.length - from }, (_, index) => from + index),
  }
}

/** Appends what is accepted; what is not leaves no trace. */
function write(session: Session, drafts: readonly Draft[]): void {
  const append = session.append.bind(session) as Append
  for (const each of drafts) {
    const { length } = session
    try {
      append(each.type, each.data, intentOf(session, each))
    } catch {
      assert.equal(session.length, length)
    }
  }
}

let runs = 0
const freshId = (): SessionId => SessionId(`s${++runs}`)

test('whatever a session accepted comes back equal, and can be gone on with', async () => {
  let accepted = 0
  const types = new Set<string>()
  const property = fc.asyncProperty(fc.array(draft, { minLength: 1, maxLength: 25 }), async drafts => {
    const id = freshId()
    const writer = await open()
    const session = writer.sessions.create(id, { meta: { cwd: '/srv/project' } })
    write(session, drafts)
    const { header } = session
    const events = [...session.events]
    accepted += events.length
    for (const { type } of events) types.add(type)
    await writer.dispose()

    const reader = await open()
    const { sessionPersistence } = reader
    if (events.length === 0) {
      await assert.rejects(sessionPersistence.readFrom(id, 0), { code: 'SESSION_NOT_FOUND' })
    } else {
      const stored = await sessionPersistence.readFrom(id, 0)
      assert.deepEqual(stored, { header, events })
      const seen = await sessionPersistence.inspect(id)
      assert.equal(seen.readOnly, undefined)
      assert.deepEqual(seen.events.slice(0, events.length), events)
      using prepared = await sessionPersistence.prepare(id)
      assert.deepEqual(prepared.session.events.slice(0, events.length), events)
      assert.deepEqual(prepared.session.flagged, [])
    }
    await reader.dispose()
  })
  await fc.assert(property, { numRuns: 60 })
  assert.ok(accepted > 300, `${accepted} events were accepted`)
  assert.deepEqual(
    Object.keys(dataOf).filter(type => !types.has(type)),
    [],
  )
})

test('what a cold append accepts is accepted by a session, in any batches', async () => {
  const property = fc.asyncProperty(
    fc.array(draft, { minLength: 1, maxLength: 15 }),
    fc.integer({ min: 1, max: 6 }),
    async (drafts, size) => {
      const ctx = await open()
      const source = ctx.sessions.prepare(freshId())
      write(source, drafts)
      const { events } = source
      const id = freshId()
      const header: SessionHeader = { version: 0, id, createdAt: 7 }
      await ctx.sessionPersistence.create(header)
      for (let at = 0; at < events.length; at += size)
        await ctx.sessionPersistence.append(id, events.slice(at, at + size))
      if (events.length > 0)
        assert.deepEqual(await ctx.sessionPersistence.readFrom(id, 0), { header, events: [...events] })
      await ctx.dispose()
    },
  )
  await fc.assert(property, { numRuns: 25 })
})

test('without the plugin its events come back all the same: skipped where they may be, else nothing is appended', async () => {
  const id = freshId()
  const must = freshId()
  const writer = await open()
  for (const [each, type] of [
    [id, 'shelf/note'],
    [must, 'shelf/must'],
  ] as const) {
    const append = writer.sessions.create(each).append as Append
    const session = writer.sessions.get(each)
    append.call(session, 'turn/start', { turn: 1 })
    append.call(session, type, { note: { deep: [1, half] }, must: 'x' })
    append.call(session, 'ghost/seen', null)
    append.call(session, 'turn/end', { turn: 1, reason: { kind: 'completed' } })
  }
  const written = writer.sessions.get(id)?.events
  await writer.dispose()

  const reader = await open([])
  using kept = await reader.sessionPersistence.prepare(id)
  assert.deepEqual(kept.session.events.slice(0, 4), written)
  const seen = await reader.sessionPersistence.inspect(must)
  assert.equal(
    seen.readOnly,
    `session "${must}" has events of type "shelf/must" (first: 1), which no loaded plugin declares; load it and open the session again`,
  )
  assert.equal(seen.events.length, 4)
  await assert.rejects(reader.sessionPersistence.prepare(must), { code: 'SESSION_READ_ONLY' })
  await reader.dispose()

  const later = await open()
  using again = await later.sessionPersistence.prepare(must)
  assert.equal(again.session.readOnly, undefined)
  await later.dispose()
})

test('what the type refuses is refused before it is written, with the name of the plugin, and nothing is stored', async () => {
  const ctx = await open()
  const session = ctx.sessions.create(freshId())
  const append = session.append.bind(session) as Append
  assert.throws(() => append('shelf/note', { other: 1 }), {
    code: 'INVALID_EVENT',
    message: 'event "shelf/note" of plugin "shelf": no note',
  })
  assert.throws(
    () => append('user/message', { role: 'user', content: [], source: { kind: 'user' } }, 'append'),
    {
      code: 'INVALID_EVENT',
      message: 'event "user/message": id of message is not a non-empty string',
    },
  )
  assert.throws(() => append('shelf/note', { note: undefined }), TypeError)
  assert.deepEqual(session.events, [])
  await ctx.dispose()
  const reader = await open()
  await assert.rejects(reader.sessionPersistence.readFrom(session.id, 0), { code: 'SESSION_NOT_FOUND' })
  await reader.dispose()
})
