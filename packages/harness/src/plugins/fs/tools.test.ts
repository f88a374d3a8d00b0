import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue, SessionEvent } from '@dsh/protocol'
import type { Agent } from '../../core/agent/index.ts'
import { Session } from '../../core/session/index.ts'
import { createHarness, say } from '../../testing/index.ts'
import { text, toolCall } from '../llm-scripted/index.ts'
import type { ScriptEntry } from '../llm-scripted/index.ts'
import { changedFiles, fs as files, FsError, fsPolicy, LocalFs, fsTools, localFs } from './index.ts'
import type { FsConfig } from './index.ts'

async function setup(
  options: { config?: Partial<FsConfig>; policy?: boolean; script?: readonly ScriptEntry[] } = {},
) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-tools-')))
  const { config = {}, policy = true, script = [] } = options
  const { ctx } = await createHarness(script)
  if (policy) await ctx.plugin(files, { cwd: '/', ...config })
  else {
    await ctx.plugin(localFs, { cwd: '/' })
    await ctx.plugin(fsTools)
  }
  let calls = 0
  const agentIn = async (
    cwd: string,
    id = `in-${++calls}`,
    seed?: readonly SessionEvent[],
  ): Promise<Agent> => {
    const agentOptions = { provider: 'mock', model: 'mock' }
    const options = { sessionId: SessionId(id), meta: { cwd }, agentOptions, ...(seed && { seed }) }
    return (await ctx.agents.create(options)).agent
  }
  const agent = await agentIn(dir, 'main')
  const call = async (
    name: string,
    args: JsonValue,
    { by = agent, signal = new AbortController().signal }: { by?: Agent; signal?: AbortSignal } = {},
  ) => {
    const callId = CallId(`c${++calls}`)
    const result = await ctx.tools.execute({ callId, name, arguments: args, signal, agent: by })
    const [block] = result.content
    const text = block?.type === 'text' ? block.text : assert.fail('no text')
    return { callId, result, text, code: result.isError ? result.error.info?.code : undefined }
  }
  const path = (name: string): string => join(dir, name)
  return {
    ctx,
    dir,
    agent,
    agentIn,
    call,
    path,
    put: (name: string, content: string | Uint8Array) => fs.writeFileSync(path(name), content),
    text: (name: string) => fs.readFileSync(path(name), 'utf8'),
    read: (name: string, by?: Agent) => call('read', { file_path: name }, by && { by }),
    write: (name: string, content: string) => call('write', { file_path: name, content }),
    edit: (name: string, old_string: string, new_string: string, by?: Agent) =>
      call('edit', { file_path: name, old_string, new_string }, by && { by }),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** What the log of a session would hold after these calls. */
function logged(
  session: Session,
  calls: readonly Awaited<ReturnType<Awaited<ReturnType<typeof setup>>['call']>>[],
) {
  for (const { callId, result } of calls) {
    const message = {
      id: `m-${callId}` as never,
      role: 'user',
      content: [
        { type: 'tool-result', toolCallId: callId, content: result.content, isError: result.isError },
      ],
      source: { kind: 'tool', callId },
    } as const
    const meta = result.meta === undefined ? {} : { meta: result.meta }
    session.append('tool/result', { turn: 1, step: 1, message, ...meta }, { surfaceOp: 'append' })
  }
}

test('read gives numbered lines and says where the file ends', async () => {
  await using world = await setup()
  world.put('a.ts', 'one\ntwo\r\nthree\rfour')
  const { text, result } = await world.read('a.ts')
  assert.equal(
    text,
    `<path>${world.path('a.ts')}</path>\n<type>file</type>\n<content>\n1: one\n2: two\n3: three\n4: four\n\n(end; 4 lines in all)\n</content>`,
  )
  const stats = fs.statSync(world.path('a.ts'), { bigint: true })
  const version = `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`
  assert.deepEqual(result.meta, {
    path: world.path('a.ts'),
    seen: { key: world.path('a.ts'), version },
    offset: 1,
    lines: 4,
    totalLines: 4,
    lang: 'ts',
  })
})

test('a window says which lines it holds and how to go on', async () => {
  await using world = await setup({ config: { readLimit: 3 } })
  world.put('a', '1\n2\n3\n4\n5\n')
  const window = async (args: Record<string, number>) =>
    (await world.call('read', { file_path: 'a', ...args })).text.split('<content>\n')[1]
  assert.equal(await window({}), '1: 1\n2: 2\n3: 3\n\n(lines 1-3 of 5; next offset 4)\n</content>')
  assert.equal(await window({ offset: 4 }), '4: 4\n5: 5\n\n(end; 5 lines in all)\n</content>')
  assert.equal(await window({ offset: 2, limit: 1 }), '2: 2\n\n(lines 2-2 of 5; next offset 3)\n</content>')
  assert.equal(
    await window({ offset: 0, limit: 99 }),
    await window({}),
    'too much is as much as there may be',
  )
})

test('a window beyond the end, and numbers that are none, are told', async () => {
  await using world = await setup()
  world.put('a', '1\n2\n')
  const beyond = await world.call('read', { file_path: 'a', offset: 3 })
  assert.equal(beyond.text, `Error: ${world.path('a')} has 2 lines, none from 3`)
  assert.equal(beyond.code, 'FS_OUT_OF_RANGE')
  for (const args of [{ offset: 1.5 }, { offset: -1 }, { limit: 0 }, { limit: '2' }]) {
    const { code } = await world.call('read', { file_path: 'a', ...args })
    assert.equal(code, 'INVALID_ARGS')
  }
})

test('an empty file is told as empty', async () => {
  await using world = await setup()
  world.put('a', '')
  assert.match((await world.read('a')).text, /<content>\n\(the file is empty\)\n<\/content>$/)
})

test('a folder is listed', async () => {
  await using world = await setup({ config: { readLimit: 2 } })
  fs.mkdirSync(world.path('sub'))
  world.put('b\n1', '')
  world.put('a', '')
  assert.equal(
    (await world.read('.')).text,
    `<path>${world.dir}</path>\n<type>directory</type>\n<content>\na\nb?1\n\n(entries 1-2 of 3; next offset 3)\n</content>`,
  )
  assert.match(
    (await world.call('read', { file_path: '.', offset: 3 })).text,
    /\nsub\/\n\n\(end; 3 entries in all\)/,
  )
  fs.mkdirSync(world.path('sub/empty'))
  assert.match((await world.read('sub/empty')).text, /\n\(the folder is empty\)\n/)
})

test('a file that is not there is answered with names like it', async () => {
  await using world = await setup()
  fs.mkdirSync(world.path('src'))
  for (const name of ['src/index.ts', 'src/Inner.ts', 'src/other.md']) world.put(name, '')
  const missing = async (name: string) => {
    const { text, code } = await world.read(name)
    assert.equal(code, 'FS_NOT_FOUND')
    return text
  }
  assert.equal(await missing('src/indx.ts'), `Error: no file ${world.path('src/indx.ts')}; similar: index.ts`)
  assert.equal(
    await missing('src/inner.js'),
    `Error: no file ${world.path('src/inner.js')}; similar: Inner.ts`,
  )
  assert.equal(await missing('src/zzz'), `Error: no file ${world.path('src/zzz')}`)
  assert.equal(
    await missing('scr/index.ts'),
    `Error: no file ${world.path('scr/index.ts')}; no folder ${world.path('scr')}; similar: src`,
  )
})

test('what is no text is refused with its reason, and the session goes on', async () => {
  await using world = await setup()
  world.put('a', Buffer.from([1, 0, 2]))
  assert.equal((await world.read('a')).text, `Error: ${world.path('a')} is binary, not text`)
  assert.equal((await world.read(' ')).text, 'Error: invalid arguments: file_path: is blank')
})

test('write makes a file with its folders and does not repeat what it wrote', async () => {
  await using world = await setup()
  const { text, result } = await world.write('new/a.txt', 'one\ntwo')
  assert.equal(text, `Created file ${world.path('new/a.txt')}`)
  assert.equal(world.text('new/a.txt'), 'one\ntwo')
  const { change, hunks } = result.meta as { change: unknown; hunks?: unknown }
  assert.deepEqual(change, {
    operation: 'create',
    before: null,
    after: '21066d108d5319ecb5a1fc4454f42ef22fc5f1c7df49c31d90294950e0ea8b2c',
  })
  assert.equal(hunks, undefined)
})

test('a rewrite shows what became different, with line numbers', async () => {
  await using world = await setup()
  world.put('a', Array.from({ length: 12 }, (_, index) => `line ${index + 1}\n`).join(''))
  await world.read('a')
  const { text } = await world.write('a', world.text('a').replace('line 6\n', 'six\nseven\n'))
  assert.equal(
    text,
    `Updated file ${world.path('a')} (+2 -1)\n 3 line 3\n 4 line 4\n 5 line 5\n-6 line 6\n+6 six\n+7 seven\n 8 line 7\n 9 line 8\n 10 line 9`,
  )
  assert.equal(
    (await world.write('a', world.text('a'))).text,
    `Updated file ${world.path('a')}: nothing is different`,
  )
})

test('edit shows what became different, each place of a scattered change, and keeps it short', async () => {
  await using world = await setup()
  world.put(
    'a',
    Array.from({ length: 30 }, (_, index) => (index % 14 === 0 ? 'x = 1\n' : `${index}\n`)).join(''),
  )
  await world.read('a')
  const { text, result } = await world.call('edit', {
    file_path: 'a',
    old_string: 'x',
    new_string: 'y',
    replace_all: true,
  })
  assert.equal(
    text,
    `Edited ${world.path('a')} in 3 places (+3 -3)\n-1 x = 1\n+1 y = 1\n 2 1\n 3 2\n 4 3\n…\n 12 11\n 13 12\n 14 13\n-15 x = 1\n+15 y = 1\n 16 15\n 17 16\n 18 17\n…\n 26 25\n 27 26\n 28 27\n-29 x = 1\n+29 y = 1\n 30 29`,
  )
  const { hunks, change } = result.meta as { hunks: unknown[]; change: { operation: string } }
  assert.equal(hunks.length, 3)
  assert.equal(change.operation, 'update')
  const long = await world.write(
    'a',
    Array.from({ length: 2000 }, (_, index) => `${'y'.repeat(300)}${index}\n`).join(''),
  )
  assert.ok(long.text.length < 500, long.text)
  assert.match(long.text, /\(\+2000 -30\)\n… \(the rest of the change is not shown\)$/)
})

test('a match that was not exact is told', async () => {
  await using world = await setup()
  world.put('a', 'say “hi”  \n')
  await world.read('a')
  assert.equal(
    (await world.edit('a', 'say "hi"', 'say "ho"')).text,
    `Edited ${world.path('a')}; matched in spite of other quotes, dashes, blanks or signs (+1 -1)\n-1 say “hi”  \n+1 say "ho"  `,
  )
})

test('mistaken arguments of write and edit change nothing', async () => {
  await using world = await setup()
  world.put('a', 'x')
  await world.read('a')
  const texts = [
    await world.edit('a', '', 'y'),
    await world.edit('a', 'x', 'x'),
    await world.edit(' ', 'x', 'y'),
    await world.edit('a', 'x', '\ud83d'),
    await world.write('a', 'a\udc00'),
    await world.call('write', { file_path: 'a' }),
  ].map(({ text }) => text.replace('Error: invalid arguments: ', ''))
  assert.deepEqual(texts.slice(0, 5), [
    'old_string: is empty',
    'new_string: is the same as old_string',
    'file_path: is blank',
    'new_string: has half of a surrogate pair',
    'content: has half of a surrogate pair',
  ])
  assert.equal(world.text('a'), 'x')
})

test('read, write, edit, edit need no further read in between', async () => {
  await using world = await setup()
  await world.write('a', 'one two')
  assert.equal((await world.edit('a', 'one', '1')).code, undefined)
  assert.equal((await world.edit('a', 'two', '2')).code, undefined)
  assert.equal(world.text('a'), '1 2')
  assert.equal((await world.write('a', 'x')).code, undefined)
})

test('a file that was not read is neither replaced nor edited, and the remedy works', async () => {
  await using world = await setup()
  world.put('a', 'one')
  const written = await world.write('a', 'x')
  assert.equal(written.text, `Error: ${world.path('a')} exists and has not been read; read it, then retry`)
  assert.equal(written.code, 'FS_NOT_OBSERVED')
  const edited = await world.edit('a', 'one', 'x')
  assert.equal(edited.text, `Error: ${world.path('a')} has not been read; read it, then retry`)
  await world.ctx.fs.readText(await world.ctx.fs.resolve(world.path('a')))
  assert.equal((await world.edit('a', 'one', 'x')).code, 'FS_NOT_OBSERVED', 'only the tool counts')
  await world.call('read', { file_path: 'a', limit: 1 })
  assert.equal((await world.edit('a', 'one', 'x')).code, undefined)
})

test('a file that changed is not overwritten, and the remedy works', async () => {
  await using world = await setup()
  world.put('a', 'one')
  await world.read('a')
  world.put('a', 'two!')
  const { text, code } = await world.write('a', 'x')
  assert.equal(text, `Error: ${world.path('a')} has changed since it was read; read it again, then retry`)
  assert.equal(code, 'FS_STALE_VERSION')
  assert.equal((await world.write('a', 'x')).code, 'FS_STALE_VERSION')
  await world.read('a')
  assert.equal((await world.write('a', 'x')).code, undefined)
})

test('an edit of a file that changed shows the text as it is now, and may then be made anew', async () => {
  await using world = await setup()
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`)
  world.put('a', lines.join('\n'))
  await world.read('a')
  world.put('a', lines.join('\n').replace('line 12', 'line twelve'))
  const { text, code } = await world.edit('a', 'line 12\nline 13', 'x')
  assert.equal(
    text,
    `Error: ${world.path('a')} has changed since it was read; it now reads\n` +
      '7: line 7\n8: line 8\n9: line 9\n10: line 10\n11: line 11\n12: line twelve\n13: line 13\n14: line 14\n' +
      '15: line 15\n16: line 16\n17: line 17\n18: line 18\nretry the edit against this text',
  )
  assert.equal(code, 'FS_STALE_VERSION')
  assert.equal((await world.edit('a', 'line twelve\nline 13', 'x')).code, undefined)
})

test('a read that finds nothing lets write make the file anew', async () => {
  await using world = await setup()
  world.put('a', 'one')
  await world.read('a')
  fs.rmSync(world.path('a'))
  assert.equal((await world.write('a', 'x')).code, 'FS_STALE_VERSION')
  assert.equal((await world.read('a')).code, 'FS_NOT_FOUND')
  assert.equal((await world.edit('a', 'one', 'x')).text, `Error: no file ${world.path('a')}`)
  assert.equal((await world.write('a', 'x')).code, undefined)
  assert.equal(world.text('a'), 'x')
})

test('what one session read, another has not', async () => {
  await using world = await setup()
  world.put('a', 'one')
  await world.read('a')
  const other = await world.agentIn(world.dir)
  assert.equal((await world.edit('a', 'one', 'x', other)).code, 'FS_NOT_OBSERVED')
  assert.equal((await world.edit('a', 'one', 'x')).code, undefined)
})

test('a resumed or forked session has read what its log says, as long as the file is the same', async () => {
  await using world = await setup()
  for (const name of ['a', 'b', 'c']) world.put(name, 'one')
  const calls = [await world.read('a'), await world.read('b'), await world.write('d', 'one')]
  logged(world.agent.session, calls)
  const resumed = await world.agentIn(world.dir, 'resumed', world.agent.session.events)
  world.put('b', 'changed')
  assert.equal((await world.edit('a', 'one', 'two', resumed)).code, undefined)
  assert.equal((await world.edit('d', 'one', 'two', resumed)).code, undefined)
  assert.equal((await world.edit('b', 'one', 'two', resumed)).code, 'FS_STALE_VERSION')
  assert.equal((await world.edit('c', 'one', 'two', resumed)).code, 'FS_NOT_OBSERVED')
})

test('a file that a turn read is edited by the first call of the session that goes on from its log', async () => {
  const change = { file_path: 'a', old_string: 'one', new_string: 'two' }
  const script = [
    toolCall('read', { file_path: 'a' }),
    text('read'),
    toolCall('edit', change),
    text('edited'),
  ]
  await using world = await setup({ script })
  world.put('a', 'one')
  world.agent.followup(say('read it'))
  await world.agent.whenIdle()
  const resumed = await world.agentIn(world.dir, 'resumed', world.agent.session.events)
  resumed.followup(say('edit it'))
  await resumed.whenIdle()
  assert.equal(world.text('a'), 'two')
  assert.deepEqual(
    changedFiles(resumed.session.events).map(({ path }) => path),
    [world.path('a')],
  )
})

test('the log tells which files were changed, from which bytes to which', async () => {
  await using world = await setup()
  for (const name of ['a', 'b']) world.put(name, 'one')
  const calls = [
    await world.read('a'),
    await world.edit('a', 'one', 'two'),
    await world.edit('a', 'two', 'three'),
    await world.read('b'),
    await world.edit('b', 'one', 'two'),
    await world.edit('b', 'two', 'one'),
    await world.write('c', 'one'),
  ]
  logged(world.agent.session, calls)
  const one = '7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed'
  const three = '8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f'
  assert.deepEqual(changedFiles(world.agent.session.events), [
    { path: world.path('a'), before: one, after: three },
    { path: world.path('c'), before: null, after: one },
  ])
})

test('without the policy, files are written and edited unread', async () => {
  await using world = await setup({ policy: false })
  world.put('a', 'one')
  assert.equal((await world.edit('a', 'one', 'two')).code, undefined)
  assert.equal((await world.edit('a', 'missing', 'x')).code, 'FS_EDIT_NOT_FOUND')
  assert.equal((await world.edit('gone', 'x', 'y')).code, 'FS_STALE_VERSION')
  assert.equal((await world.write('a', 'x')).code, undefined)
})

test('relative paths start at the folder of the session', async () => {
  await using world = await setup()
  fs.mkdirSync(world.path('sub'))
  const by = await world.agentIn(world.path('sub'))
  await world.call('write', { file_path: 'a', content: 'one' }, { by })
  await world.call('edit', { file_path: './a', old_string: 'one', new_string: 'two' }, { by })
  assert.match((await world.call('read', { file_path: '../sub/a' }, { by })).text, /1: two/)
  assert.equal(world.text('sub/a'), 'two')
})

test('what a result put aside is read by its name, from the own session alone', async () => {
  await using world = await setup()
  const { sha256 } = await world.agent.session.artifacts.put(Buffer.from('one\ntwo\nthree'), 'text/plain')
  const path = `artifact:${sha256}`
  const { text, result } = await world.call('read', { file_path: path, offset: 2, limit: 1 })
  assert.equal(
    text,
    `<path>${path}</path>\n<type>file</type>\n<content>\n2: two\n\n(lines 2-2 of 3; next offset 3)\n</content>`,
  )
  assert.deepEqual(result.meta, { path, offset: 2, lines: 1, totalLines: 3, lang: '' })
  const other = await world.agentIn(world.dir)
  assert.equal((await world.read(path, other)).text, `Error: no artifact ${sha256} in this session`)
})

test('a cancelled call touches nothing', async () => {
  await using world = await setup()
  const signal = AbortSignal.abort()
  const { code } = await world.call('write', { file_path: 'a', content: '' }, { signal })
  assert.equal(code, 'ABORTED_BEFORE_DISPATCH')
  assert.deepEqual(fs.readdirSync(world.dir), [])
})

test('a listener that fails on what was seen fails the call, though the change is made', async () => {
  await using world = await setup()
  world.ctx.on('fs/observed', () => {
    throw new Error('not seen')
  })
  assert.equal((await world.write('a', 'x')).text, 'Error: not seen')
  assert.equal(world.text('a'), 'x')
})

test('a result that another version wrote is drawn plainly', async () => {
  await using world = await setup()
  const { tools } = world.ctx
  world.put('a', 'one')
  const read = await world.read('a')
  const edited = await world.edit('a', 'one', 'two')
  const draw = (name: string, args: JsonValue, meta?: JsonValue) =>
    tools
      .get(name)
      ?.presentResult?.(args, { content: [], isError: false, ...(meta === undefined ? {} : { meta }) })
  const path = world.path('a')
  const args = { file_path: 'a', content: '', old_string: 'one', new_string: 'two' }
  assert.deepEqual(draw('read', args, read.result.meta), {
    card: 'read',
    title: path,
    data: { path, offset: 1, lines: 1, totalLines: 1, lang: '' },
  })
  assert.deepEqual(draw('edit', args, edited.result.meta), {
    card: 'diff',
    title: path,
    data: { path, operation: 'update', hunks: [{ oldStart: 1, newStart: 1, lines: ['-one', '+two'] }] },
  })
  const seen = { key: 'k', version: 'v' }
  for (const meta of [
    undefined,
    null,
    1,
    [],
    {},
    { path },
    { path, seen },
    { path, seen: { key: 1, version: 2 } },
  ] as const)
    for (const name of ['read', 'write', 'edit'])
      assert.equal(draw(name, args, meta as never), undefined, JSON.stringify(meta))
  const change = { operation: 'update', before: null, after: 'x' }
  for (const hunks of [1, [1], [{ oldStart: 1, newStart: 1 }], [{ oldStart: '1', newStart: 1, lines: [] }]])
    assert.equal(draw('edit', args, { path, seen, change, hunks }), undefined)
})

test('this is what a model is told of the tools', async () => {
  await using world = await setup()
  assert.deepEqual(
    world.ctx.tools.schemas().map(schema => JSON.stringify(schema)),
    [
      '{"name":"edit","description":"Replace text in a file that was read. old_string must be unique there.",' +
        '"parameters":{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},' +
        '"new_string":{"type":"string"},"replace_all":{"type":"boolean","description":"every occurrence"},' +
        '"edits":{"type":"array","description":"more, made in order after this one; all or none",' +
        '"items":{"type":"object","additionalProperties":false,"properties":{"old_string":{"type":"string"},' +
        '"new_string":{"type":"string"},"replace_all":{"type":"boolean"}},"required":["old_string",' +
        '"new_string"]}}},"required":["file_path","old_string","new_string"]}}',
      '{"name":"read","description":"Read a text file as numbered lines (\\"12: text\\"), see a picture,' +
        ' or list a folder.","parameters":{"type":"object","properties":{"file_path":{"type":"string",' +
        '"description":"absolute, or in the working folder"},"offset":{"type":"number","description":"first line,' +
        ' from 1"},"limit":{"type":"number","description":"lines, at most 2000"}},"required":["file_path"]}}',
      '{"name":"write","description":"Create or replace a whole file; missing folders are made.",' +
        '"parameters":{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},' +
        '"required":["file_path","content"]}}',
    ],
  )
  assert.deepEqual(world.ctx.tools.deferred(), [], 'read_image is for those who ask for it')
  const { sections } = await world.ctx.systemPrompt.assemble()
  assert.deepEqual(
    sections.filter(({ name }) => name.startsWith('tool:')),
    [
      {
        name: 'tool:read',
        text: 'Read a file before you change it. Read long files in parts: offset, limit.',
      },
      { name: 'tool:write', text: 'Use write for new files and whole rewrites, edit for changes.' },
      {
        name: 'tool:edit',
        text: 'For edit copy old_string from the file, without the line numbers that read shows.',
      },
    ],
  )
})

test('several edits of one call land together or not at all', async () => {
  await using world = await setup()
  world.put('a', 'one\ntwo\n')
  await world.read('a')
  const first = { file_path: 'a', old_string: 'one', new_string: '1' }
  const edits = [{ old_string: 'two', new_string: '2' }]
  const bad = await world.call('edit', { ...first, edits: [...edits, { old_string: 'x', new_string: '' }] })
  assert.equal(bad.code, 'FS_EDIT_NOT_FOUND')
  assert.equal(world.text('a'), 'one\ntwo\n')
  const done = await world.call('edit', { ...first, edits })
  assert.equal(done.text, `Edited ${world.path('a')} in 2 places (+2 -2)\n-1 one\n-2 two\n+1 1\n+2 2`)
  assert.equal(world.text('a'), '1\n2\n')
  for (const [edit, problem] of [
    [{ old_string: '', new_string: 'x' }, 'edits[0].old_string: is empty'],
    [{ old_string: 'x', new_string: 'x' }, 'edits[0].new_string: is the same as old_string'],
  ] as const)
    assert.equal(
      (await world.call('edit', { ...first, edits: [edit] })).text,
      `Error: invalid arguments: ${problem}`,
    )
})

test('everything goes with the plugins', async () => {
  const { ctx } = await createHarness()
  const before = ctx.inspect().effects.length
  const plugin = ctx.plugin(files)
  await plugin
  assert.deepEqual(
    ctx.tools.schemas().map(({ name }) => name),
    ['edit', 'read', 'write'],
  )
  await plugin.dispose()
  assert.deepEqual(ctx.tools.schemas(), [])
  assert.equal(ctx.get('fs'), undefined)
  assert.equal(ctx.inspect().effects.length, before)
  const target = { targetKey: 'k' as never, displayPath: 'k' }
  assert.equal(await ctx.waterfall('fs/write-intent', target, {}, async () => undefined), undefined)
})

test('the policy needs nothing and decides alone', async () => {
  const { ctx } = await createHarness()
  await ctx.plugin(fsPolicy)
  ctx.on('fs/write-intent', async () => assert.fail('a second decider is never reached'))
  const target = { targetKey: 'k' as never, displayPath: '/k' }
  const intent = (actor: object) => ctx.waterfall('fs/write-intent', target, actor, async () => undefined)
  assert.deepEqual(await intent({}), { kind: 'createIfAbsent' }, 'nobody has seen anything')
  const actor = { agent: { session: Session.create(SessionId('s')) } }
  assert.deepEqual(await intent(actor), { kind: 'createIfAbsent' })
  ctx.veto('fs/observed', target, { kind: 'present', version: 'v1' as never }, actor)
  assert.deepEqual(await intent(actor), { kind: 'replaceIfVersion', version: 'v1' })
  assert.deepEqual(await ctx.waterfall('fs/edit-intent', target, actor, async () => undefined), {
    version: 'v1',
  })
  ctx.veto('fs/observed', target, { kind: 'absent' }, actor)
  assert.deepEqual(await intent(actor), { kind: 'createIfAbsent' })
  await assert.rejects(
    ctx.waterfall('fs/edit-intent', target, actor, async () => undefined),
    { code: 'FS_NOT_FOUND' },
  )
  await assert.rejects(
    ctx.waterfall('fs/edit-intent', target, {}, async () => undefined),
    { code: 'FS_NOT_OBSERVED' },
  )
})

test('limits that are no numbers of lines keep the plugin from loading', async () => {
  const { ctx } = await createHarness()
  for (const readLimit of [0, -1, 1.5, NaN])
    await assert.rejects(async () => ctx.plugin(files, { readLimit }), { code: 'INVALID_CONFIG' })
  await assert.rejects(async () => ctx.plugin(files, { readLimits: 1 } as never), { code: 'INVALID_CONFIG' })
})

test('a change is in the log, on the disk, before the file is another', async () => {
  const script = [toolCall('write', { file_path: 'a', content: 'new' }, 'w'), text('done')]
  await using world = await setup({ script })
  const flushed: unknown[] = []
  world.ctx.on('session/flush', async session => {
    const change = session.last('fs/change')
    if (change !== undefined) flushed.push([change.data, fs.existsSync(world.path('a'))])
  })
  world.agent.followup(say('go'))
  await world.agent.whenIdle()
  const after = createHash('sha256').update('new').digest('hex')
  const data = { callId: 'w', path: world.path('a'), before: null, after }
  assert.deepEqual(flushed[0], [data, false])
  assert.equal(world.text('a'), 'new')
})

test('a change that could not be logged is not made', async () => {
  const script = [toolCall('write', { file_path: 'a', content: 'new' }, 'w'), text('done')]
  await using world = await setup({ script })
  world.ctx.on('session/flush', async session => {
    if (session.last('fs/change') !== undefined) throw new Error('the disk is full')
  })
  world.agent.followup(say('go'))
  await world.agent.whenIdle()
  assert.equal(fs.existsSync(world.path('a')), false)
  const result = world.agent.session.last('tool/result')
  assert.equal(result?.data.message.content[0].isError, true)
  assert.match(JSON.stringify(result?.data.message), /the disk is full/)
})

test('whoever guards reads hears of the target and the call, and can keep it from being touched', async () => {
  await using world = await setup()
  world.put('open', '1')
  world.put('secret', '2')
  const heard: unknown[] = []
  world.ctx.on('fs/read-intent', async (target, actor, next) => {
    heard.push([target.displayPath, typeof actor.token, actor.agent === world.agent])
    if (target.displayPath.endsWith('secret')) throw new FsError('FS_SANDBOX_DENIED', 'not this one')
    await next()
  })
  world.ctx.on('fs/observed', target => void heard.push(target.displayPath))
  assert.match((await world.read('open')).text, /1: 1/)
  const refused = await world.read('secret')
  assert.deepEqual([refused.text, refused.code], ['Error: not this one', 'FS_SANDBOX_DENIED'])
  assert.equal((await world.read('missing')).code, 'FS_NOT_FOUND')
  assert.equal((await world.read('.')).result.isError, false)
  const asked = (name: string) => [world.path(name), 'symbol', true]
  assert.deepEqual(heard, [
    asked('open'),
    world.path('open'),
    asked('secret'),
    asked('missing'),
    world.path('missing'),
    [world.dir, 'symbol', true],
    world.dir,
  ])
})

test('what a file loses when it is replaced is told', async () => {
  await using world = await setup()
  world.put('a', 'one\n')
  for (const name of ['b', 'c']) fs.linkSync(world.path('a'), world.path(name))
  await world.read('a')
  assert.equal(
    (await world.edit('a', 'one', 'two')).text,
    `Edited ${world.path('a')} (+1 -1)\n-1 one\n+1 two\n(2 other hard links keep the old content)`,
  )
  assert.deepEqual(['a', 'b'].map(world.text), ['two\n', 'one\n'])
  await world.read('b')
  assert.match((await world.write('b', 'x\n')).text, /\n\(1 other hard link keeps the old content\)$/)
  assert.doesNotMatch((await world.write('b', 'y\n')).text, /hard link/)
})

test('a tool asks for the state of a file once to read it, and never to write or edit it', async t => {
  const { mock: spy } = t.mock.method(LocalFs.prototype, 'stat')
  await using world = await setup({ policy: false })
  const counted = async (run: () => Promise<{ readonly result: { readonly isError: boolean } }>) => {
    const before = spy.callCount()
    assert.equal((await run()).result.isError, false)
    return spy.callCount() - before
  }
  assert.equal(await counted(() => world.write('new/a', 'one\ntwo\n')), 0)
  assert.equal(await counted(() => world.read('new/a')), 1)
  assert.equal(await counted(() => world.edit('new/a', 'two', 'three')), 0)
  assert.equal(await counted(() => world.write('new/a', 'four\n')), 0)
})
