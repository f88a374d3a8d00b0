import assert from 'node:assert/strict'
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { CallId, MessageId, SessionId } from '@dsh/protocol'
import type { ContentBlock } from '@dsh/protocol'
import type { Agent } from '../../src/core/agent/index.ts'
import { lintLog } from '../../src/core/invariants/index.ts'
import { createUserMessage } from '../../src/core/llm/index.ts'
import { defineTool } from '../../src/core/tools/index.ts'
import type { ToolDefinition } from '../../src/core/tools/index.ts'
import type { Context } from '../../src/kernel/index.ts'
import { fs } from '../../src/plugins/fs/index.ts'
import { llmOpenAIChat } from '../../src/plugins/llm-openai-chat/index.ts'
import type { WireNotice } from '../../src/plugins/llm-openai-chat/index.ts'
import { text } from '../../src/plugins/llm-scripted/index.ts'
import { storeJsonl } from '../../src/plugins/store-jsonl/index.ts'
import { createHarness, reply, say, startMockProvider } from '../../src/testing/index.ts'
import type { Harness, MockProvider } from '../../src/testing/index.ts'
import { compose, turn } from './composed.ts'

const route = { provider: 'deepseek', model: 'deepseek-flash' }

interface Setup extends Harness {
  readonly mock: MockProvider
  readonly dir: string
  readonly notices: WireNotice[]
  readonly errors: string[]
  open(id?: string): Agent
}

/** Real tools, a real store, and a provider as strict as the real one. */
async function setup(t: TestContext): Promise<Setup> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'dsh-degrade-')))
  const mock = await startMockProvider()
  const harness = await createHarness()
  const { ctx } = harness
  const notices: WireNotice[] = []
  const errors: string[] = []
  ctx.on('llm/notice', notice => notices.push(notice))
  ctx.on('internal/error', (error, _fiber, where) => {
    errors.push(`${where}: ${error instanceof Error ? error.message : String(error)}`)
  })
  const providers = { deepseek: { models: { 'deepseek-flash': { images: true } } } }
  await ctx.plugin(llmOpenAIChat, { env: mock.env, providers })
  await ctx.plugin(storeJsonl, { root: join(dir, 'sessions') })
  await ctx.plugin(fs, { cwd: dir })
  t.after(async () => {
    await ctx.dispose()
    await mock.close()
    await rm(dir, { recursive: true })
  })
  const open = (id = 'a'): Agent => ctx.agentLoop.create(SessionId(id), route, { cwd: dir })
  return { ...harness, mock, dir, notices, errors, open }
}

/** The last turn went well, the provider refused nothing, and the log is in order. */
function assertWell(agent: Agent, mock: MockProvider): void {
  assert.equal(agent.session.last('turn/end')?.data.reason.kind, 'completed')
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
  assert.deepEqual(lintLog(agent.session.events), [])
}

function resultTexts(agent: Agent): string[] {
  return [...agent.session.since(0)].flatMap(event =>
    event.type === 'tool/result' ? [JSON.stringify(event.data.message.content[0].content)] : [],
  )
}

const codes = (notices: readonly WireNotice[]): string[] =>
  [...new Set(notices.map(({ code }) => code))].toSorted()

test('messages that no provider takes are mended one by one, and the rest of the history goes out as it is', async t => {
  const { open, mock, notices } = await setup(t)
  const agent = open()
  const { session } = agent
  const place = { turn: 1, step: 1 }
  const model = (id: string, content: readonly ContentBlock[]) => ({
    ...place,
    message: {
      id: MessageId(id),
      role: 'assistant' as const,
      content,
      source: { kind: 'model' as const, ...route },
    },
  })
  const surfaceOp = 'append'
  session.append('turn/start', { turn: 1 })
  session.append('step/start', place)
  session.append('user/message', say('first'), { surfaceOp })
  session.append('assistant/message', model('empty', []), { surfaceOp })
  session.append('assistant/message', model('mute', [{ type: 'reasoning', text: 'hm' }]), { surfaceOp })
  session.append('assistant/message', model('odd', [{ type: 'hologram', beam: 1 } as never]), { surfaceOp })
  const half = { type: 'tool-call', id: CallId('c1'), name: 'read', arguments: '{"file_pa' } as const
  session.append('assistant/message', model('half', [half]), { surfaceOp })
  session.append('user/message', createUserMessage({ content: [], source: { kind: 'user' } }), { surfaceOp })
  session.append('user/message', say('last'), { surfaceOp })
  session.append('step/end', place)
  session.append('turn/end', { turn: 1, reason: { kind: 'completed' } })
  mock.push(reply.text('fine'))
  await turn(agent, 'go on')
  assert.equal(session.last('turn/end')?.data.reason.kind, 'completed')
  const sent = mock.requests.at(-1)?.body.messages ?? []
  const texts = JSON.stringify(sent)
  for (const word of ['first', 'last', 'go on', 'hologram']) assert.ok(texts.includes(word), word)
  assert.deepEqual(
    mock.requests.flatMap(({ problems }) => problems),
    [],
  )
  assert.deepEqual(codes(notices), ['BAD_ARGUMENTS', 'EMPTY_MESSAGE', 'MENDED_PAIRING', 'UNKNOWN_BLOCK'])
})

test('a tool that throws, gives nonsense or never heard of its arguments fails alone, beside others in one step', async t => {
  const { ctx, open, mock } = await setup(t)
  const hostile = (name: string, execute: () => unknown): void => {
    const tool = defineTool({
      name,
      description: 'Misbehaves.',
      parameters: {},
      execute: execute as () => string,
    })
    ctx.tools.register(tool)
  }
  hostile('throws', () => {
    throw { toString: () => ({}) }
  })
  hostile('circular', () => {
    const value: Record<string, unknown> = {}
    value['self'] = value
    return value
  })
  hostile('gives_undefined', () => undefined)
  hostile('works', () => 'all right')
  assert.throws(() => hostile('works', () => 'twice'), { code: 'DUPLICATE_NAME' })
  assert.throws(() => hostile('no name', () => ''), { code: 'INVALID_TOOL' })
  mock.push(
    reply.toolCalls(
      ['throws', 'circular', 'gives_undefined', 'absent', 'works'].map(name => ({ name, arguments: {} })),
    ),
    reply.text('done'),
  )
  const agent = open()
  await turn(agent, 'go')
  assertWell(agent, mock)
  const errors = [...agent.session.since(0)].flatMap(event =>
    event.type === 'tool/result' ? [event.data.error?.code ?? 'ok'] : [],
  )
  assert.equal(errors.length, 5)
  assert.equal(errors[3], 'UNKNOWN_TOOL')
  assert.equal(errors[4], 'ok')
  assert.match(resultTexts(agent).at(-1) ?? '', /all right/)
})

test('a tool whose schema cannot be read or sent is left out or opened, with a word, and the others are offered', async t => {
  const { ctx, open, mock, notices, errors } = await setup(t)
  const raw = (name: string, parameters: object, extra: object = {}): void => {
    ctx.tools.register({
      name,
      description: 'From elsewhere.',
      parameters,
      output: { schema: {}, render: () => [{ type: 'text', text: 'ok' }] },
      execute: () => 'ok',
      ...extra,
    } as unknown as ToolDefinition)
  }
  raw('plain', { type: 'object', properties: {} })
  raw('list', { type: 'array' })
  raw('odd_parts', { type: 'object', properties: { a: 1, b: { type: 'string' } }, required: 'b' })
  assert.throws(() => raw('never', { type: 'object', examples: [undefined] }), TypeError)
  // A schema that is made when it is asked for, and then cannot be.
  const late = {
    get parameters(): never {
      throw new Error('no schema today')
    },
  }
  const plain = { name: 'late', description: '', output: { schema: {}, render: () => [] }, execute: () => '' }
  ctx.tools.register(Object.defineProperties(plain, Object.getOwnPropertyDescriptors(late)) as never)
  mock.push(reply.text('hello'))
  const agent = open()
  await turn(agent, 'go')
  assertWell(agent, mock)
  const offered = mock.requests[0]?.body.tools?.map(tool => tool.function.name) ?? []
  assert.ok(
    ['plain', 'read', 'list', 'odd_parts'].every(name => offered.includes(name)),
    offered.join(),
  )
  assert.ok(!offered.includes('late') && !offered.includes('never'))
  assert.deepEqual(codes(notices), ['BAD_TOOL_SCHEMA'])
  assert.deepEqual(errors, ['schema of tool "late": no schema today'])
})

test('a picture that is gone, broken or unknown is a line of text, and the pictures beside it are seen', async t => {
  const { open, mock, notices } = await setup(t)
  const agent = open()
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  const good = await agent.session.artifacts.put(png, 'image/png')
  const broken = await agent.session.artifacts.put(Buffer.from('not a picture'), 'image/png')
  const image = (sha256: string, mediaType = 'image/png'): ContentBlock => ({
    type: 'image',
    attachment: { sha256, mediaType, bytes: 9 },
  })
  agent.inject(
    createUserMessage({
      content: [
        { type: 'text', text: 'look' },
        image(broken.sha256),
        image(good.sha256, 'image/jpeg'),
        image('0'.repeat(64)),
      ],
      source: { kind: 'user' },
    }),
  )
  mock.push(reply.text('seen'))
  await turn(agent, 'go')
  assertWell(agent, mock)
  const [said] = mock.requests[0]?.body.messages?.filter(({ role }) => role === 'user') ?? []
  assert.deepEqual(said?.content, [
    { type: 'text', text: 'look' },
    { type: 'text', text: '[Image not shown: its data is no PNG, JPEG, GIF or WebP (image/png).]' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
    { type: 'text', text: '[Image not shown: its data is missing (image/png).]' },
  ])
  assert.deepEqual(codes(notices), ['BAD_IMAGE'])
})

test('files that cannot be read fail alone, in one step with files that can', async t => {
  const { dir, open, mock } = await setup(t)
  await writeFile(join(dir, 'good.txt'), 'fine\n')
  await writeFile(join(dir, 'secret.txt'), 'x')
  await chmod(join(dir, 'secret.txt'), 0)
  await mkdir(join(dir, 'folder'))
  await writeFile(join(dir, 'folder', 'inside.txt'), 'x')
  await symlink('nowhere', join(dir, 'folder', 'dangling'))
  await symlink('loop', join(dir, 'loop'))
  await writeFile(join(dir, 'binary.bin'), Buffer.from([0, 1, 2, 0xff, 0xfe, 0]))
  const names = ['absent.txt', 'loop', 'binary.bin', 'folder', 'secret.txt', 'good.txt']
  mock.push(
    reply.toolCalls(names.map(name => ({ name: 'read', arguments: { file_path: join(dir, name) } }))),
    reply.text('done'),
  )
  const agent = open()
  await turn(agent, 'read them')
  assertWell(agent, mock)
  const results = resultTexts(agent)
  assert.equal(results.length, names.length)
  assert.match(results[3] ?? '', /dangling/)
  assert.match(results[3] ?? '', /inside\.txt/)
  assert.match(results[5] ?? '', /fine/)
})

test('a plugin that breaks at every place it has a hand in costs its own part alone', async t => {
  const fail = (where: string) => (): never => {
    throw new Error(where)
  }
  const host = await compose(t, {
    rows: [{ name: 'broken' }, { name: 'breaks-later' }],
    plugins: {
      broken: { name: 'broken', apply: fail('set-up') },
      'breaks-later': {
        name: 'breaks-later',
        inject: ['sessions', 'systemPrompt'],
        apply(ctx: Context) {
          ctx.on('session/event', fail('event'))
          ctx.on('agent/session-start', fail('start'))
          ctx.on('tools/result', fail('result'))
          ctx.setTimeout(fail('timer'), 0)
          ctx.effect(() => fail('disposal'))
        },
      },
    },
  })
  const { loader, adapter, composition, file, errors } = host
  const row = loader.report().find(({ id }) => id === 'broken')
  assert.deepEqual([row?.state, row?.reason], ['failed', 'set-up'])
  const { agent } = await host.agent('a')
  adapter.push(text('hello'))
  await turn(agent, 'go')
  assert.equal(agent.session.last('turn/end')?.data.reason.kind, 'completed')
  await composition.update(file, 'breaks-later', { disabled: true })
  adapter.push(text('hello'))
  await turn(agent, 'go')
  assert.equal(agent.session.last('turn/end')?.data.reason.kind, 'completed')
  assert.ok(errors.every(line => line.startsWith('broken ') || line.startsWith('breaks-later ')))
  for (const what of ['event', 'start', 'disposal'])
    assert.ok(
      errors.some(line => line.endsWith(`: ${what}`)),
      what,
    )
})

test('an inbox that does not follow from the log starts empty, with a word, and the session goes on', async t => {
  const { ctx, mock } = await setup(t)
  const id = SessionId('old')
  const old = await ctx.agents.create({ sessionId: id, agentOptions: route })
  const seq = old.agent.session.length
  old.agent.session.append('agent/inbox/spliced', {
    target: 'next-turn',
    start: 0,
    removedCount: 1,
    inserted: [],
  })
  mock.push(reply.text('one'), reply.text('two'))
  await turn(old.agent, 'go')
  await old.dispose()
  const { agent, notices } = await ctx.agents.resume({ resumeSessionId: id, agentOptions: route })
  assert.deepEqual(notices, [
    `what had waited to be read is not known any more: event ${seq} changes "next-turn" up to message 1, and 0 wait there`,
  ])
  await turn(agent, 'go on')
  assert.deepEqual(
    agent.session.messages.map(({ role }) => role),
    ['user', 'assistant', 'user', 'assistant'],
  )
})

test('an event that its plugin refuses is seen by no fold, with a word, and the session goes on', async t => {
  const { ctx, mock } = await setup(t)
  const id = SessionId('old')
  const old = await ctx.agents.create({ sessionId: id, agentOptions: route })
  type Append = (type: string, data: unknown) => void
  const append = old.agent.session.append.bind(old.agent.session) as unknown as Append
  append('shelf/note', { note: 'sound' })
  append('shelf/note', { other: 1 })
  append('shelf/note', { note: 'sound again' })
  mock.push(reply.text('one'), reply.text('two'))
  await turn(old.agent, 'go')
  await old.dispose()
  const shelf = {
    name: 'shelf',
    inject: ['sessions'],
    apply(own: Context) {
      const validate = (data: unknown): void => {
        if (!('note' in (data as object))) throw new Error('no note')
      }
      own.sessions.registerEventType({ type: 'shelf/note' as never, ignorable: true, validate })
    },
  }
  await ctx.plugin(shelf)
  const { agent, notices } = await ctx.agents.resume({ resumeSessionId: id, agentOptions: route })
  const reason = 'event "shelf/note" of plugin "shelf": no note'
  assert.deepEqual(agent.session.flagged, [{ seq: 1, type: 'shelf/note', plugin: 'shelf', reason }])
  assert.deepEqual(notices, [`event 1 is passed over: ${reason}`])
  const count = agent.session.fold({
    name: 'notes',
    types: ['shelf/note' as never],
    init: () => 0,
    apply: (before: number) => before + 1,
  })
  assert.equal(count, 2)
  await turn(agent, 'on')
  assertWell(agent, mock)
})

test('a session that is broken is a row with its reason, and all others are listed, read and gone on with', async t => {
  const { ctx, dir, open, mock } = await setup(t)
  for (const id of ['good', 'cut', 'noise', 'empty', 'stolen']) {
    mock.push(reply.text('one'))
    const handle = await ctx.agents.create({
      sessionId: SessionId(id),
      agentOptions: route,
      meta: { cwd: dir },
    })
    await turn(handle.agent, 'go')
    await handle.dispose()
  }
  assert.equal(open('z').id, 'z')
  const rows = await ctx.sessionPersistence.list()
  const pathOf = (id: string): string => rows.find(row => row.id === id)?.path ?? ''
  const bytes = await readFile(pathOf('cut'))
  await truncate(pathOf('cut'), bytes.length - 3)
  const noisy = await readFile(pathOf('noise'))
  noisy.fill(0xaa, Math.floor(noisy.length / 2), Math.floor(noisy.length / 2) + 40)
  await writeFile(pathOf('noise'), noisy)
  await writeFile(pathOf('empty'), '')
  await copyFile(pathOf('good'), pathOf('stolen'))
  await mkdir(join(dirname(dirname(pathOf('good'))), 'folder', 'log.jsonl.zst'), { recursive: true })

  const after = await ctx.sessionPersistence.list()
  const problems = Object.fromEntries(after.map(row => [row.id, 'problem' in row ? row.problem : 'sound']))
  assert.equal(problems['good'], 'sound')
  for (const id of ['empty', 'stolen', 'folder']) assert.notEqual(problems[id], 'sound', id)
  const noise = await ctx.sessionPersistence.inspect(SessionId('noise'))
  assert.match(noise.readOnly ?? '', /damaged/)
  assert.ok((noise.gaps?.length ?? 0) > 0)
  await assert.rejects(ctx.agents.resume({ resumeSessionId: SessionId('noise') }), {
    code: 'SESSION_DAMAGED',
  })
  for (const id of ['good', 'cut']) {
    mock.push(reply.text('two'))
    const { agent } = await ctx.agents.resume({ resumeSessionId: SessionId(id), agentOptions: route })
    await turn(agent, 'on')
    assertWell(agent, mock)
  }
})
