import assert from 'node:assert/strict'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId, MessageId, SessionId } from '@dsh/protocol'
import type { SessionEvent } from '@dsh/protocol'
import { createUserMessage } from '../../src/core/llm/index.ts'
import { cutText, defineTool, keepText, TextRetainer } from '../../src/core/tools/index.ts'
import { bash } from '../../src/plugins/bash/index.ts'
import { fs } from '../../src/plugins/fs/index.ts'
import { llmOpenAIChat } from '../../src/plugins/llm-openai-chat/index.ts'
import type { WireNotice } from '../../src/plugins/llm-openai-chat/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness, reply, say, startMockProvider } from '../../src/testing/index.ts'
import type { MockCall } from '../../src/testing/index.ts'

const smile = '😀'
const half = smile.charAt(0)
const otherHalf = smile.charAt(1)

/** Real tools, a real store, and a provider that answers 400 to half a character. */
async function setup(t: TestContext, { limit = 2000 } = {}) {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'dsh-text-')))
  const mock = await startMockProvider()
  const open = async () => {
    const harness = await createHarness()
    const { ctx } = harness
    const notices: WireNotice[] = []
    ctx.on('llm/notice', notice => notices.push(notice))
    await ctx.plugin(llmOpenAIChat, { env: mock.env })
    await ctx.plugin(storeJsonl, { root: join(dir, 'sessions') })
    await ctx.plugin(fs, { cwd: dir, readMaxLineLength: limit, readMaxBytes: 4 * limit })
    await ctx.plugin(subprocess, { env: process.env })
    await ctx.plugin(bash, { maxOutputBytes: limit })
    return { ...harness, notices, route: { provider: 'deepseek', model: 'deepseek-flash' } }
  }
  const first = await open()
  t.after(async () => {
    await first.ctx.dispose()
    await mock.close()
    await rm(dir, { recursive: true })
  })
  const agent = first.ctx.agentLoop.create(SessionId('a'), first.route, { cwd: dir })
  /** One turn in which the model makes these calls. */
  const call = async (...calls: readonly MockCall[]): Promise<void> => {
    mock.push(reply.toolCalls(calls), reply.text('done'))
    agent.followup(say('go'))
    await agent.whenIdle()
  }
  return { ...first, mock, dir, agent, call, open }
}

/** Paths of the texts in `value` that hold half a character. */
function halvesIn(value: unknown, path = ''): string[] {
  if (typeof value === 'string') return value.isWellFormed() ? [] : [path]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [
    ...(key.isWellFormed() ? [] : [`${path}.${key}`]),
    ...halvesIn(inner, `${path}.${key}`),
  ])
}

/** Cut wrongly, a text shows that too where a later guard has mended it. */
function assertWhole(events: readonly SessionEvent[]): void {
  assert.deepEqual(halvesIn(events), [])
  assert.doesNotMatch(resultsOf(events), /\ufffd|\\ud[89a-f]/i)
}

function resultsOf(events: readonly SessionEvent[]): string {
  return JSON.stringify(events.filter(event => event.type === 'tool/result').map(event => event.data))
}

/** Texts around a cut at `limit` units or bytes, so that one of them is cut at each place inside the character. */
function linesAround(limit: number): string[] {
  return [-5, -4, -3, -2, -1, 0, 1].map(shift => `${'a'.repeat(limit + shift)}${smile}${'b'.repeat(40)}`)
}

const endOf = (events: readonly SessionEvent[]): string | undefined => {
  const end = events.findLast(event => event.type === 'turn/end')
  return end?.data.reason.kind
}

test('the one function that cuts never leaves half a character, whatever it keeps and wherever the cut falls', () => {
  const text = `a${smile}é${smile}漢`.repeat(3)
  for (let bytes = 0; bytes <= Buffer.byteLength(text) + 1; bytes++) {
    for (const keep of ['head', 'tail', 'ends'] as const) {
      const cut = cutText(text, bytes, { keep })
      assert.ok(cut.isWellFormed() && !cut.includes('\ufffd'), `${keep} ${bytes}: ${cut}`)
      assert.ok(Buffer.byteLength(cut) <= bytes)
    }
    const { head, tail } = keepText(text, { headBytes: bytes, tailBytes: 3 })
    assert.ok(head.isWellFormed() && tail.isWellFormed())
    const retainer = new TextRetainer({ headBytes: bytes, tailBytes: 5 })
    for (const unit of text.split('')) retainer.push(unit)
    const kept = retainer.result()
    assert.ok(!`${kept.head}${kept.tail}`.includes('\ufffd'), `retained ${bytes}`)
  }
})

test('read cuts long lines and long files between characters', async t => {
  const { dir, call, agent, mock } = await setup(t)
  const files = [...linesAround(2000), ...linesAround(1999), linesAround(7900).join('\n')]
  const calls = await Promise.all(
    files.map(async (text, index) => {
      const file = join(dir, `${smile}${index}.txt`)
      await writeFile(file, text)
      return { name: 'read', arguments: { file_path: file } }
    }),
  )
  await call(...calls)
  assert.equal(endOf(agent.session.events), 'completed')
  assert.match(resultsOf(agent.session.events), /line truncated to 2000 chars/)
  assertWhole(agent.session.events)
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
})

test('read and bash show bytes that are no text as replacement characters', async t => {
  const { dir, call, agent, mock } = await setup(t)
  const file = join(dir, 'bad.txt')
  const cesu = Buffer.from([0x61, 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, 0x62, 0xf0, 0x9f, 0x98])
  await writeFile(file, cesu)
  const command = `cat bad.txt; cat bad.txt >&2`
  await call(
    { name: 'read', arguments: { file_path: file } },
    { name: 'bash', arguments: { command, description: 'prints bytes' } },
  )
  assert.ok(resultsOf(agent.session.events).includes('\ufffdb\ufffd'))
  assert.deepEqual(halvesIn(agent.session.events), [])
  assert.equal(mock.requests.length, 2)
  assert.equal(endOf(agent.session.events), 'completed')
})

test('bash cuts its output between characters, also where they come byte by byte', async t => {
  const { call, agent, mock } = await setup(t, { limit: 200 })
  const commands = [
    ...[94, 95, 96, 97, 98, 99, 100, 101].map(
      pad =>
        `printf '%s' ${'a'.repeat(pad)}; for i in $(seq 60); do printf '${smile}'; done; printf '%s' ${'b'.repeat(pad)}`,
    ),
    String.raw`for b in '\360' '\237' '\230' '\200'; do printf "$b"; done`,
  ]
  for (const command of commands)
    await call({ name: 'bash', arguments: { command, description: 'prints characters' } })
  const shown = resultsOf(agent.session.events)
  assert.match(shown, /omitted/)
  assert.ok(shown.includes(`"${smile}`))
  assertWhole(agent.session.events)
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
})

test('edit reports changes of long lines between characters, and so does what it could not find', async t => {
  const { dir, call, agent, mock } = await setup(t)
  for (const [index, line] of linesAround(197).entries()) {
    const file = join(dir, `${index}.txt`)
    await writeFile(file, `one\n${line}\nthree\n`)
    const edit = (old_string: string, new_string: string): MockCall => ({
      name: 'edit',
      arguments: { file_path: file, old_string, new_string },
    })
    await call({ name: 'read', arguments: { file_path: file } })
    await call(edit(line, `${line}${line}`), edit(`${line.slice(0, -3)}zzz${smile}`, 'x'))
  }
  const shown = resultsOf(agent.session.events)
  assert.match(shown, /old_string is not in/)
  assert.ok(shown.includes('a…'))
  assertWhole(agent.session.events)
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
})

test('what is said of a wrong call is cut between characters', async t => {
  const { ctx, call, agent } = await setup(t)
  ctx.tools.register(
    defineTool({
      name: 'pick',
      description: 'Picks one.',
      parameters: { one: { type: 'string', enum: ['a', 'b'] } },
      execute: () => 'ok',
    }),
  )
  await call(
    ...linesAround(58).map(one => ({ name: 'pick', arguments: { one } })),
    ...linesAround(58).map(key => ({ name: 'pick', arguments: { [key]: 1 } })),
    ...linesAround(80).map(name => ({ name })),
  )
  const shown = resultsOf(agent.session.events)
  assert.match(shown, /INVALID_ARGS/)
  assert.match(shown, /UNKNOWN_TOOL/)
  assertWhole(agent.session.events)
})

test('a tool that gives, throws or names half a character gets a whole one into the log', async t => {
  const { ctx, call, agent, mock } = await setup(t)
  const tool = (name: string, execute: () => string): void => {
    ctx.tools.register(
      defineTool({ name, description: `Says ${half}.`, parameters: {}, execute: () => execute() }),
    )
  }
  tool('give', () => `x${half}`)
  tool('fail', () => {
    throw new Error(`no ${half}`)
  })
  await call(
    { name: 'give' },
    { name: 'fail' },
    { name: `ask${half}` },
    { name: 'give', arguments: `{"a${half}` },
  )
  const results = agent.session.events.filter(event => event.type === 'tool/result')
  assert.equal(results.length, 4)
  assert.deepEqual(halvesIn(results), [])
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
})

test('what plugins and people put in by halves goes out whole, and is counted with the message it stands in', async t => {
  const { ctx, agent, mock, notices } = await setup(t)
  ctx.systemPrompt.section({ name: 'cut', order: 1, text: `section ${half}` })
  ctx.systemPrompt.context({ name: 'cut', order: 1, text: `context ${half}` })
  const note = createUserMessage({
    content: [{ type: 'text', text: `${otherHalf} note ${half}` }],
    source: { kind: 'plugin', plugin: 'cutter' },
  })
  agent.inject(note)
  mock.push(reply.text('one'), reply.text('two'))
  agent.followup(say(`prompt ${half}`))
  await agent.whenIdle()
  agent.followup(say('again'))
  await agent.whenIdle()
  assert.equal(endOf(agent.session.events), 'completed')
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
  assert.match(mock.requests[0]?.text ?? '', /\ufffd note \ufffd/)
  const told = notices.filter(({ code }) => code === 'LONE_SURROGATE')
  assert.equal(told.find(({ messageId }) => messageId === note.id)?.count, 2)
  // Each message is told of once, not with every request.
  assert.equal(new Set(told.map(({ messageId }) => messageId)).size, told.length)
})

test('a character that a provider sends in two halves is whole again', async t => {
  const { agent, mock } = await setup(t)
  const delta = (content: string): object => ({ choices: [{ index: 0, delta: { content } }] })
  const stop = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  mock.push(reply.sse([delta(`a${half}`), delta(`${otherHalf}b`), stop]), reply.text('on'))
  agent.followup(say('go'))
  await agent.whenIdle()
  assert.match(JSON.stringify(agent.session.messages), /a😀b/)
  agent.followup(say('on'))
  await agent.whenIdle()
  assert.equal(endOf(agent.session.events), 'completed')
})

test('an old log with halves in every kind of message goes on with its next turn', async t => {
  const { ctx, open, mock, route, dir } = await setup(t)
  const id = SessionId('old')
  const place = { turn: 1, step: 1 }
  const events = [
    ['turn/start', { turn: 1 }],
    ['step/start', place],
    ['user/message', say(`prompt ${half}`), 'append'],
    [
      'assistant/message',
      {
        ...place,
        message: {
          id: MessageId('m'),
          role: 'assistant',
          source: { kind: 'model', ...route },
          content: [
            { type: 'reasoning', text: `thought ${half}` },
            { type: 'text', text: `answer ${otherHalf}` },
            { type: 'tool-call', id: CallId('c'), name: 'read', arguments: `{"file_path":"${half}"}` },
          ],
        },
      },
      'append',
    ],
    ['tool/call', { ...place, callId: CallId('c'), name: 'read', arguments: `{"file_path":"${half}"}` }],
    [
      'tool/result',
      {
        ...place,
        message: {
          id: MessageId('r'),
          role: 'user',
          source: { kind: 'tool', callId: CallId('c') },
          content: [
            {
              type: 'tool-result',
              toolCallId: CallId('c'),
              content: [{ type: 'text', text: `cut here: ${half}` }],
              isError: false,
            },
          ],
        },
      },
      'append',
    ],
    ['step/end', place],
    ['turn/end', { turn: 1, reason: { kind: 'completed' } }],
  ].map(([type, data, surfaceOp], seq) => ({
    type,
    seq,
    time: 1_700_000_000_000 + seq,
    data,
    ...(surfaceOp === undefined ? {} : { surfaceOp }),
  })) as unknown as SessionEvent[]
  const header = { version: 0, id, createdAt: 1_700_000_000_000, cwd: dir }
  await ctx.sessionPersistence.create(header)
  await ctx.sessionPersistence.append(id, events)
  const later = await open()
  t.after(() => later.ctx.dispose())
  const { agent } = await later.ctx.agents.resume({ resumeSessionId: id, agentOptions: later.route })
  assert.equal(halvesIn(agent.session.events).length, 6)
  mock.push(reply.text('fine'))
  agent.followup(say('go on'))
  await agent.whenIdle()
  assert.equal(endOf(agent.session.events), 'completed')
  assert.deepEqual(
    mock.requests.map(({ problems }) => problems),
    [[]],
  )
  assert.ok(later.notices.some(({ code }) => code === 'LONE_SURROGATE'))
})
