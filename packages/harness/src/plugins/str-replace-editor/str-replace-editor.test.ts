import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'
import { createHarness } from '../../testing/index.ts'
import { fs as files, FsError } from '../fs/index.ts'
import { strReplaceEditor } from './index.ts'
import type { StrReplaceEditorConfig } from './index.ts'

async function setup(config: Partial<StrReplaceEditorConfig> = {}) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-editor-')))
  const { ctx } = await createHarness([])
  await ctx.plugin(files, { cwd: dir })
  const plugin = ctx.plugin(strReplaceEditor, config)
  await plugin
  const agentOptions = { provider: 'mock', model: 'mock' }
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: dir }, agentOptions })
  let calls = 0
  const raw = async (args: Record<string, JsonValue>) => {
    const signal = new AbortController().signal
    const input = { callId: CallId(`c${++calls}`), name: 'str_replace_editor', signal, agent }
    const result = await ctx.tools.execute({ ...input, arguments: args })
    const [block] = result.content
    const text = block?.type === 'text' ? block.text : assert.fail('no text')
    return { text, code: result.isError ? result.error.info?.code : undefined }
  }
  const path = (name: string): string => join(dir, name)
  return {
    ctx,
    dir,
    plugin,
    raw,
    path,
    call: async (command: string, name: string, args: Record<string, JsonValue> = {}) =>
      (await raw({ command, path: path(name), ...args })).text,
    put: (name: string, content: string) => {
      fs.mkdirSync(join(path(name), '..'), { recursive: true })
      fs.writeFileSync(path(name), content)
    },
    text: (name: string) => fs.readFileSync(path(name), 'utf8'),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

test('view numbers the lines of a file, all of them or a range', async () => {
  await using world = await setup()
  world.put('a', 'one\r\ntwo\nthree\n')
  const head = `${world.path('a')}, 4 lines:\n`
  assert.equal(await world.call('view', 'a'), `${head}     1  one\n     2  two\n     3  three\n     4  `)
  assert.equal(await world.call('view', 'a', { view_range: [2, 3] }), `${head}     2  two\n     3  three`)
  assert.equal(await world.call('view', 'a', { view_range: [3, -1] }), `${head}     3  three\n     4  `)
  const refusals = {
    '[0,1]': 'begins at 0; the file has 1 to 4',
    '[5,5]': 'begins at 5; the file has 1 to 4',
    '[1,5]': 'ends at 5; the file has 4 lines',
    '[3,2]': 'ends at 2, before it begins at 3',
    '[1]': 'must be two numbers, the first and the last line',
  }
  for (const [range, problem] of Object.entries(refusals))
    assert.equal(
      await world.call('view', 'a', { view_range: JSON.parse(range) as number[] }),
      `Error: invalid arguments: view_range: ${problem}`,
    )
})

test('view lists two levels of a folder without what nobody looks for', async () => {
  await using world = await setup()
  for (const name of ['b/c/d', 'b/.hidden', 'a', 'node_modules/x', '__pycache__/x', '.git/x', 'B'])
    world.put(name, '')
  fs.symlinkSync('nowhere', world.path('link'))
  assert.equal(
    await world.call('view', ''),
    `${world.dir}/:\nf\tB\nf\ta\nd\tb\nd\tb/c\n?\tlink`
      .replaceAll('\t', `\t${world.dir}/`)
      .replace('/:', ':'),
  )
  assert.match(await world.call('view', '', { view_range: [1, 2] }), /view_range: is for files/)
})

test('a view that is too long is cut and says how to see the rest', async () => {
  await using world = await setup({ maxOutputChars: 200 })
  world.put('a', 'line\n'.repeat(100))
  const shown = await world.call('view', 'a')
  assert.equal(shown.length, 200)
  assert.match(shown, /\n\(cut; find the lines you need with grep, then view them with view_range\)$/)
})

test('create makes a file and never replaces one', async () => {
  await using world = await setup()
  assert.equal(await world.call('create', 'x/a', { file_text: '' }), `Created file ${world.path('x/a')}`)
  assert.equal(world.text('x/a'), '')
  const again = await world.raw({ command: 'create', path: world.path('x/a'), file_text: 'other' })
  assert.deepEqual(
    [again.code, again.text],
    ['FS_NOT_OBSERVED', `Error: ${world.path('x/a')} exists; change it with str_replace or insert`],
  )
  assert.equal(world.text('x/a'), '')
})

test('str_replace goes through the edit engine and takes new text as it stands', async () => {
  await using world = await setup()
  world.put('a', '\ufeffone\r\n\ttwo\r\n')
  await world.call('view', 'a')
  const done = await world.call('str_replace', 'a', { old_str: 'one\n\ttwo', new_str: '$& one\n\ttwo' })
  assert.equal(done, `Edited ${world.path('a')}`)
  assert.equal(world.text('a'), '\ufeff$& one\r\n\ttwo\r\n')
  await world.call('str_replace', 'a', { old_str: '$& ' })
  assert.equal(world.text('a'), '\ufeffone\r\n\ttwo\r\n', 'without new text the old one goes')
  world.put('b', 'x\nx\n')
  await world.call('view', 'b')
  const twice = await world.raw({ command: 'str_replace', path: world.path('b'), old_str: 'x', new_str: 'y' })
  assert.equal(twice.code, 'FS_AMBIGUOUS_EDIT')
  assert.match(twice.text, /at lines 1, 2/)
  const none = await world.raw({
    command: 'str_replace',
    path: world.path('b'),
    old_str: 'zebra',
    new_str: 'y',
  })
  assert.equal(none.code, 'FS_EDIT_NOT_FOUND')
})

test('insert puts text behind a line, at both ends too, and keeps mark and line ends', async () => {
  await using world = await setup()
  world.put('a', '\ufeffone\r\ntwo\r\n')
  await world.call('view', 'a')
  const insert = (line: number, text: string) =>
    world.call('insert', 'a', { insert_line: line, new_str: text })
  assert.equal(await insert(1, 'x\ny'), `Inserted into ${world.path('a')} after line 1`)
  assert.equal(world.text('a'), '\ufeffone\r\nx\r\ny\r\ntwo\r\n')
  await insert(0, 'first')
  await insert(6, 'last')
  assert.equal(world.text('a'), '\ufefffirst\r\none\r\nx\r\ny\r\ntwo\r\n\r\nlast')
  assert.equal(await insert(9, 'x'), 'Error: invalid arguments: insert_line: must be from 0 to 7, not 9')
  world.put('empty', '')
  await world.call('view', 'empty')
  await world.call('insert', 'empty', { insert_line: 0, new_str: 'text' })
  assert.equal(world.text('empty'), 'text\n')
})

test('a file must be seen before it is changed, and one that is gone may be made anew', async () => {
  await using world = await setup()
  world.put('a', 'one')
  const unseen = { command: 'str_replace', path: world.path('a'), old_str: 'one', new_str: 'two' }
  assert.equal((await world.raw(unseen)).code, 'FS_NOT_OBSERVED')
  await world.call('view', 'a')
  fs.rmSync(world.path('a'))
  const gone = { command: 'view', path: world.path('a') }
  assert.equal((await world.raw(gone)).code, 'FS_NOT_FOUND')
  await world.call('create', 'a', { file_text: 'new' })
  assert.equal(world.text('a'), 'new')
  world.ctx.on(
    'fs/edit-intent',
    async () => {
      throw new FsError('FS_SANDBOX_DENIED', 'not here')
    },
    { prepend: true },
  )
  assert.equal((await world.raw({ ...unseen, old_str: 'new' })).code, 'FS_SANDBOX_DENIED')
  assert.equal(
    (await world.raw({ command: 'insert', path: world.path('a'), insert_line: 0, new_str: 'x' })).code,
    'FS_SANDBOX_DENIED',
  )
  assert.equal(world.text('a'), 'new')
})

test('arguments that a command needs are asked for by name, and a path must be absolute', async () => {
  await using world = await setup()
  world.put('a', 'one')
  await world.call('view', 'a')
  const problem = async (args: Record<string, JsonValue>) =>
    (await world.raw({ path: world.path('a'), ...args })).text
  assert.equal(
    await problem({ command: 'view', path: 'a' }),
    `Error: invalid arguments: path: "a" is not absolute; did you mean ${world.path('a')}?`,
  )
  const missing = {
    create: 'file_text: is missing for create',
    str_replace: 'old_str: is missing for str_replace',
    insert: 'insert_line: is missing for insert',
  }
  for (const [command, text] of Object.entries(missing))
    assert.equal(await problem({ command }), `Error: invalid arguments: ${text}`)
  assert.match(await problem({ command: 'insert', insert_line: 0 }), /new_str: is missing for insert/)
  assert.match(await problem({ command: 'undo' }), /^Error: invalid arguments: /)
})

test('the tool tells the model this about itself, unless told otherwise, and goes with its plugin', async () => {
  await using world = await setup({ description: 'Mine.' })
  const schema = () => world.ctx.tools.schemas().find(({ name }) => name === 'str_replace_editor')
  assert.equal(schema()?.description, 'Mine.')
  assert.equal(
    JSON.stringify(schema()?.parameters),
    '{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},' +
      '"path":{"type":"string","description":"absolute"},"file_text":{"type":"string","description":"for create"},' +
      '"insert_line":{"type":"integer","description":"for insert: the line before, 0 for the beginning"},' +
      '"new_str":{"type":"string","description":"for str_replace and insert"},' +
      '"old_str":{"type":"string","description":"for str_replace"},' +
      '"view_range":{"type":"array","description":"for view: first and last line; -1 for the end","items":{"type":"integer"}}},' +
      '"required":["command","path"]}',
  )
  await world.plugin.dispose()
  assert.equal(schema(), undefined)
  await assert.rejects(async () => world.ctx.plugin(strReplaceEditor, { description: '' }), {
    code: 'INVALID_CONFIG',
  })
})
