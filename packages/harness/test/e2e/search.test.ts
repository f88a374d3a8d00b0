import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fs as files } from '../../src/plugins/fs/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import { search } from '../../src/plugins/search/index.ts'
import type { SearchConfig } from '../../src/plugins/search/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'
import { CallId, SessionId } from '@dsh/protocol'
import type { JsonValue } from '@dsh/protocol'

async function setup(
  tree: Readonly<Record<string, string | Uint8Array>> = {},
  config: Partial<SearchConfig> = {},
) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-search-')))
  const { ctx } = await createHarness([])
  await ctx.plugin(files, { cwd: '/' })
  await ctx.plugin(subprocess, { env: process.env })
  await ctx.plugin(search, config)
  const options = {
    sessionId: SessionId('s'),
    meta: { cwd: dir },
    agentOptions: { provider: 'mock', model: 'mock' },
  }
  const { agent } = await ctx.agents.create(options)
  let [calls, seconds] = [0, 1_000_000]
  /** Each file is newer than the one before. */
  const put = (name: string, content: string | Uint8Array): void => {
    const path = join(dir, name)
    fs.mkdirSync(dirname(path), { recursive: true })
    fs.writeFileSync(path, content)
    fs.utimesSync(path, ++seconds, seconds)
  }
  for (const [name, content] of Object.entries(tree)) put(name, content)
  const call = async (name: string, args: JsonValue, signal = AbortSignal.timeout(20_000)) => {
    const callId = CallId(`c${++calls}`)
    const result = await ctx.tools.execute({ callId, name, arguments: args, signal, agent })
    const [block] = result.content
    const text = block?.type === 'text' ? block.text : assert.fail('no text')
    return { result, text, code: result.isError ? result.error.info?.code : undefined }
  }
  return {
    ctx,
    dir,
    agent,
    put,
    call,
    glob: async (pattern: string, path?: string) =>
      (await call('glob', { pattern, ...(path !== undefined && { path }) })).text,
    grep: async (pattern: string, more: Record<string, JsonValue> = {}) =>
      (await call('grep', { pattern, ...more })).text,
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

test('glob lists files newest first, hidden ones too, relative to the session folder', async () => {
  await using world = await setup({
    'src/old.ts': '',
    '.github/ci.yml': '',
    'src/deep/new.ts': '',
    '.git/config': '',
    'a.js': '',
  })
  assert.equal(await world.glob('*'), 'a.js\nsrc/deep/new.ts\n.github/ci.yml\nsrc/old.ts')
  assert.equal(await world.glob('*.ts'), 'src/deep/new.ts\nsrc/old.ts')
  assert.equal(await world.glob('src/*.ts'), 'src/old.ts')
  assert.equal(await world.glob('**/deep/*'), 'src/deep/new.ts')
  assert.equal(await world.glob('*.{js,yml}'), 'a.js\n.github/ci.yml')
  assert.equal(await world.glob('*.ts', 'src/deep'), 'src/deep/new.ts')
  assert.equal(await world.glob(`${world.dir}/src/**`), 'src/deep/new.ts\nsrc/old.ts')
  assert.equal(await world.glob('*.py'), 'No files found')
  assert.equal(await world.glob('lib/*.ts'), 'No files found: there is no lib')
})

test('what version control keeps for itself is not found, also where the search begins in there', async () => {
  await using world = await setup({
    '.git/hooks/x': 'needle',
    '.hg/x': 'needle',
    'sub/.git': 'needle',
    y: 'needle',
  })
  assert.equal(await world.glob('**'), 'y')
  assert.equal(await world.glob('**', '.git'), 'No files found')
  assert.equal(await world.grep('needle', { path: '.git/hooks' }), 'No matches found')
  assert.equal(await world.grep('needle'), 'Found 1 match in 1 file\n\ny\n1: needle')
})

test('grep groups lines by file, the newest file first, with numbers and context', async () => {
  await using world = await setup({
    'old.ts': 'one needle\r\ntwo\r\n',
    'src/new.ts': 'a\nneedle x\nb\nc\nneedle y\n',
    '.env': 'KEY=needle',
  })
  assert.equal(
    await world.grep('needle'),
    'Found 4 matches in 3 files\n\n.env\n1: KEY=needle\n\nsrc/new.ts\n2: needle x\n5: needle y\n\nold.ts\n1: one needle',
  )
  assert.equal(
    await world.grep('needle x', { context: 1, path: 'src' }),
    'Found 1 match in 1 file\n\nsrc/new.ts\n1- a\n2: needle x\n3- b',
  )
  assert.equal(
    await world.grep('needle$', { include: 'old.*' }),
    'Found 1 match in 1 file\n\nold.ts\n1: one needle',
  )
  assert.equal(
    await world.grep('NEEDLE X', { ignore_case: true }),
    'Found 1 match in 1 file\n\nsrc/new.ts\n2: needle x',
  )
  assert.equal(
    await world.grep('needle', { path: 'src/new.ts', limit: 1, offset: 1 }),
    'Found 2 matches in 1 file; 2-2, the last\n\nsrc/new.ts\n5: needle y',
  )
  assert.equal(await world.grep('nothing'), 'No matches found')
})

test('grep lists files or counts, and goes on from an offset', async () => {
  await using world = await setup({ a: 'x\nx\n', 'b/c': 'x', 'b/d': 'x' })
  const files = { output_mode: 'files_with_matches' }
  assert.equal(await world.grep('x', files), 'Found 3 files\n\nb/d\nb/c\na')
  assert.equal(await world.grep('x', { ...files, limit: 2 }), 'Found 3 files; 1-2, next offset 2\n\nb/d\nb/c')
  assert.equal(await world.grep('x', { ...files, offset: 2 }), 'Found 3 files; 3-3, the last\n\na')
  assert.equal(await world.grep('x', { ...files, offset: 9 }), 'Found 3 files; none from offset 9')
  assert.equal(
    await world.grep('x', { output_mode: 'count' }),
    'Found 4 matches in 3 files\n\nb/d: 1\nb/c: 1\na: 2',
  )
  assert.equal(
    await world.grep('x', { limit: 3 }),
    'Found 4 matches in 3 files; 1-3, next offset 3\n\nb/d\n1: x\n\nb/c\n1: x\n\na\n1: x',
  )
})

test('a pattern reaches over lines where it names a line end or is told to', async () => {
  await using world = await setup({ a: 'begin\nmiddle\nend\n' })
  assert.equal(await world.grep('begin\\nmiddle'), 'Found 2 matches in 1 file\n\na\n1: begin\n2: middle')
  assert.equal(await world.grep('begin.*end'), 'No matches found')
  assert.match(await world.grep('begin.*end', { multiline: true }), /^Found 3 matches/)
})

test('a file of CRLF is found like one of LF, and a pattern may look for the CR itself', async () => {
  await using world = await setup({ crlf: 'a\r\nb c\r\n', lf: 'a\nb c\n', n: 'a\\nb\n' })
  const files = async (pattern: string) =>
    (await world.grep(pattern, { output_mode: 'files_with_matches' }))
      .replace(/^.*\n\n/, '')
      .split('\n')
      .toSorted()
  assert.deepEqual(await files('c$'), ['crlf', 'lf'])
  assert.deepEqual(await files('a\\nb'), ['crlf', 'lf'])
  assert.deepEqual(await files('a\nb'), ['crlf', 'lf'])
  assert.deepEqual(await files('a\\r?$'), ['crlf', 'lf'])
  assert.deepEqual(await files('\\r$'), ['crlf'])
  assert.deepEqual(await files('a\\r\\nb'), ['crlf'])
  assert.deepEqual(await files('a\\\\nb'), ['n'])
  assert.deepEqual(await files('a[\\n]b'), ['lf'])
})

test('grep and glob leave out the same files, and a search that finds nothing says what was left out', async () => {
  await using world = await setup({
    'vendor/.gitignore': 'node_modules\n*.log\n',
    'vendor/node_modules/pkg/index.js': 'NEEDLE',
    'vendor/a.log': 'NEEDLE',
    'vendor/own.js': 'other',
  })
  assert.equal(
    await world.grep('NEEDLE', { path: 'vendor' }),
    'No matches found\n(2 ignored files fit: vendor/a.log, vendor/node_modules/pkg/index.js; name one as path to search it)',
  )
  assert.equal(
    await world.glob('index.js'),
    'No files found\n(1 ignored file fits: vendor/node_modules/pkg/index.js; name its folder as path to search it)',
  )
  assert.equal(await world.glob('*.log'), await world.glob('**/*.log'))
  assert.match(await world.glob('*.log'), /^No files found\n\(1 ignored file fits: vendor\/a\.log/)
  assert.equal(await world.glob('*.js'), 'vendor/own.js')
  const there = 'vendor/node_modules/pkg'
  assert.match(await world.grep('NEEDLE', { path: there }), /^Found 1 match/)
  assert.equal(await world.glob('*.js', there), `${there}/index.js`)
  assert.equal(await world.glob(`${there}/*`), `${there}/index.js`)
  assert.match(await world.grep('NEEDLE', { path: 'vendor/a.log' }), /^Found 1 match/)
})

test('a list that is too long is spread over the folders, and kept whole for the model to read', async () => {
  await using world = await setup({}, { globMaxResults: 4 })
  for (let n = 0; n < 9; n++) world.put(`big/${n}`, '')
  world.put('old/a', '')
  world.put('root', '')
  const { text, result } = await world.call('glob', { pattern: '**' })
  const sha256 = /artifact:([0-9a-f]{64})/.exec(text)?.[1] ?? assert.fail(text)
  assert.equal(
    text,
    `root\nold/a\nbig/8\nbig/7\n\n(4 of 11 files: a spread over 3 folders, the newest of each; read artifact:${sha256} for all)`,
  )
  const kept = Buffer.from((await world.agent.session.artifacts.get(sha256)) ?? [])
  assert.equal(
    kept.toString(),
    'root\nold/a\nbig/8\nbig/7\nbig/6\nbig/5\nbig/4\nbig/3\nbig/2\nbig/1\nbig/0\n',
  )
  assert.deepEqual(result.meta, { shape: 'paths', total: 11, paths: ['root', 'old/a', 'big/8', 'big/7'] })
  assert.match(
    await world.glob('big/*'),
    /^big\/8\nbig\/7\nbig\/6\nbig\/5\n\n\(4 of 9 files: the newest; read artifact:/,
  )
  const nested = await world.ctx.tools.execute({
    callId: CallId('n'),
    name: 'glob',
    arguments: { pattern: '**' },
    parent: Symbol('program'),
    signal: new AbortController().signal,
    agent: world.agent,
  })
  const [block] = nested.content
  assert.doesNotMatch(block?.type === 'text' ? block.text : '', /artifact/, 'a program has the value itself')
})

test('hostile patterns are patterns and nothing else', async () => {
  await using world = await setup({ 'x.txt': '--pre=touch\n$(touch pwned)\n-e\n' })
  for (const pattern of ['--pre=touch', '\\$\\(touch pwned\\)', '-e', '--help'])
    await world.call('grep', { pattern })
  assert.equal(await world.grep('--pre=touch'), 'Found 1 match in 1 file\n\nx.txt\n1: --pre=touch')
  assert.equal(await world.glob('$(touch pwned)'), 'No files found')
  assert.equal(await world.glob('--files;*'), 'No files found')
  await world.call('grep', { pattern: 'x', include: '--pre=touch*' })
  await world.call('grep', { pattern: 'x', path: '-x' })
  assert.deepEqual(fs.readdirSync(world.dir), ['x.txt'])
})

test('patterns that cannot be read are refused in the words of the search program', async () => {
  await using world = await setup({ a: '' })
  const refused = async (name: string, args: JsonValue) => {
    const { text, code } = await world.call(name, args)
    return [code, text]
  }
  const [code, text] = await refused('grep', { pattern: 'foo(' })
  assert.equal(code, 'SEARCH_INVALID_PATTERN')
  assert.equal(text, 'Error: regex parse error:\n    (?:foo()\n    ^\nerror: unclosed group')
  assert.deepEqual(await refused('glob', { pattern: '!*.ts' }), [
    'SEARCH_INVALID_PATTERN',
    'Error: the glob "!*.ts" begins with !, and there is no search for what does not fit',
  ])
  assert.deepEqual(await refused('grep', { pattern: 'x', include: '*.ts,*.js' }), [
    'SEARCH_INVALID_PATTERN',
    'Error: the glob "*.ts,*.js" has a comma outside of braces; write {a,b}',
  ])
  assert.deepEqual(await refused('grep', { pattern: 'x', include: ' ' }), [
    'SEARCH_INVALID_PATTERN',
    'Error: the glob " " is blank',
  ])
  assert.deepEqual(await refused('grep', { pattern: '' }), [
    'INVALID_ARGS',
    'Error: invalid arguments: pattern: is empty',
  ])
  assert.match(await world.grep(' '), /^No matches found$/, 'blanks can be looked for')
  assert.deepEqual(await refused('grep', { pattern: 'x', path: 'b' }), [
    'FS_NOT_FOUND',
    `Error: no folder ${world.dir}/b; similar: a`,
  ])
})

test('a giant line costs what is shown of it, and bytes that are not UTF-8 are told', async () => {
  await using world = await setup({
    'min.js': `${'x'.repeat(30_000_000)}needle`,
    'latin.txt': Buffer.from('needle \xe9\n', 'latin1'),
    'data.bin': Buffer.from('needle\0needle'),
  })
  const text = await world.grep('needle')
  assert.equal(
    text,
    `Found 2 matches in 2 files\n\nlatin.txt\n1: (not UTF-8)\n\nmin.js\n1: ${'x'.repeat(497)}…`,
  )
})

test('beyond the bound of output a search ends with what it has', async () => {
  await using world = await setup(
    { a: 'needle\n'.repeat(200_000) },
    { rawOutputMaxBytes: 100_000, grepMaxMatches: 2 },
  )
  const text = await world.grep('needle')
  assert.match(text, /^Found more than \d+ matches in 1 file; 1-2, next offset 2\n\na\n1: needle\n2: needle$/)
})

test('what the policy of a session hides is neither found nor searched, and may not be the place of a search', async () => {
  await using world = await setup({
    'a/needle': 'needle',
    'secret/needle': 'needle',
    'secret/open/needle': 'needle',
  })
  await world.ctx.plugin(sandbox, { mode: 'workspace-write', home: join(world.dir, 'home'), env: {} })
  const { ctx, dir } = world
  const end = ctx.sandboxPolicy.extend({ unreadable: [join(dir, 'secret')] })
  assert.equal(await world.glob('needle'), 'a/needle')
  assert.equal(await world.grep('needle'), 'Found 1 match in 1 file\n\na/needle\n1: needle')
  assert.equal(await world.grep('needle', { output_mode: 'count' }), 'Found 1 match in 1 file\n\na/needle: 1')
  assert.equal((await world.call('grep', { pattern: 'needle', path: 'secret' })).code, 'FS_SANDBOX_DENIED')
  assert.equal((await world.call('glob', { pattern: 'secret/**' })).code, 'FS_SANDBOX_DENIED')
  assert.equal((await world.call('read', { file_path: 'secret/needle' })).code, 'FS_SANDBOX_DENIED')
  if (fs.existsSync('/proc/self'))
    assert.match(
      await world.grep('.', { path: '/proc', include: 'environ', output_mode: 'files_with_matches' }),
      /^No matches/,
    )
  end()
  assert.match(await world.grep('needle'), /^Found 3 matches/)
})

test('a file as the place of a search is searched whatever include says, and a missing place is told', async () => {
  await using world = await setup({ 'src/a.ts': 'needle', 'two\nlines': 'needle' })
  const found = 'Found 1 match in 1 file\n\nsrc/a.ts\n1: needle'
  assert.equal(await world.grep('needle', { path: 'src/a.ts', include: 'lib/*.js' }), found)
  assert.equal(await world.grep('needle', { include: 'src/**/*.ts' }), found)
  assert.equal(await world.grep('needle', { include: 'lib/*.ts' }), 'No matches found: there is no lib')
  const missing = await world.call('grep', { pattern: 'needle', path: 'scr', include: 'lib/*.ts' })
  assert.deepEqual(
    [missing.code, missing.text],
    ['FS_NOT_FOUND', `Error: no folder ${world.dir}/scr; similar: src`],
  )
  assert.equal((await world.call('glob', { pattern: '*', path: 'src/a.ts' })).code, 'FS_NOT_DIRECTORY')
  assert.equal(await world.glob('two*'), 'two?lines')
})

test('a place behind a link is shown as it was named', async () => {
  await using world = await setup({ 'real/a': 'needle' })
  const elsewhere = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-search-other-')))
  fs.writeFileSync(join(elsewhere, 'b'), 'needle')
  fs.symlinkSync(elsewhere, join(world.dir, 'link'))
  assert.equal(await world.glob('*', 'link'), 'link/b')
  assert.equal(await world.glob('*', elsewhere), join(elsewhere, 'b'))
  assert.equal(await world.glob('*'), 'real/a', 'links are not followed on the way')
  fs.rmSync(elsewhere, { recursive: true })
})
