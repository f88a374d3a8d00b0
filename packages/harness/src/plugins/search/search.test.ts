import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '@dsh/protocol'
import { createHarness } from '../../testing/index.ts'
import { fs } from '../fs/index.ts'
import { subprocess } from '../subprocess/index.ts'
import { search } from './index.ts'

async function setup() {
  const { ctx } = await createHarness([])
  await ctx.plugin(fs, { cwd: '/' })
  await ctx.plugin(subprocess, { env: {} })
  const before = ctx.inspect().effects.length
  const plugin = ctx.plugin(search)
  await plugin
  const tool = (name: string) => ctx.tools.get(name) ?? assert.fail(`no ${name}`)
  return { ctx, before, plugin, tool }
}

test('this is what a model is told of both tools', async () => {
  const { ctx } = await setup()
  const schemas = ctx.tools.schemas().filter(({ name }) => name === 'glob' || name === 'grep')
  assert.deepEqual(
    schemas.map(schema => JSON.stringify(schema)),
    [
      '{"name":"glob","description":"Find files by name,' +
        ' newest first. What .gitignore names is left out unless path leads there; hidden files are found.",' +
        '"parameters":{"type":"object","properties":{"pattern":{"type":"string","description":"like src/**/*.ts"},' +
        '"path":{"type":"string","description":"folder"}},"required":["pattern"]}}',
      '{"name":"grep","description":"Search file contents by regular expression (Rust syntax),' +
        ' newest files first. What .gitignore names is left out unless path leads there; hidden files are searched.",' +
        '"parameters":{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string",' +
        '"description":"file or folder"},"include":{"type":"string","description":"glob of files: *.{ts,tsx}"},' +
        '"output_mode":{"type":"string","enum":["content","files_with_matches","count"]},' +
        '"context":{"type":"number","description":"lines before and after"},"ignore_case":{"type":"boolean"},' +
        '"multiline":{"type":"boolean","description":"a dot matches line ends"},"limit":{"type":"number",' +
        '"description":"at most 250"},"offset":{"type":"number","description":"results to skip"}},' +
        '"required":["pattern"]}}',
    ],
  )
  const { sections } = await ctx.systemPrompt.assemble()
  assert.deepEqual(
    sections.find(({ name }) => name === 'tool:grep')?.text,
    'Search with grep and glob, not with bash.',
  )
})

test('both may run beside others, for half a minute each, and do nothing to the world', async () => {
  const { ctx, tool } = await setup()
  for (const name of ['glob', 'grep']) {
    const { timeoutMs, isConcurrencySafe, effects } = tool(name)
    assert.deepEqual([timeoutMs, isConcurrencySafe?.({ pattern: 'x' }), effects], [30_000, true, undefined])
  }
  await ctx.dispose()
})

test('a card shows what was looked for, and nothing for a meta of another form', async () => {
  const { tool } = await setup()
  const draw = (name: string, meta: JsonValue) =>
    tool(name).presentResult?.({ pattern: 'x' }, { content: [], isError: false, meta })
  assert.deepEqual(tool('grep').presentCall?.({ pattern: 'x' }), { card: 'search', title: 'x' })
  const paths = { shape: 'paths', total: 1, paths: ['a'] }
  assert.deepEqual(draw('glob', paths), { card: 'search', title: 'x', data: paths })
  const matches = { shape: 'matches', matches: 2, files: [{ path: 'a', lines: [1, 2] }] }
  assert.deepEqual(draw('grep', matches), { card: 'search', title: 'x', data: matches })
  const wrong = [null, 1, {}, { shape: 'paths', paths: [1], total: 1 }, { shape: 'paths', paths: [] }]
  const others = [
    { shape: 'matches', matches: 1, files: [{}] },
    { shape: 'matches', matches: 1, files: [{ path: 'a', lines: ['1'] }] },
  ]
  for (const meta of [...wrong, ...others]) assert.equal(draw('grep', meta), undefined, JSON.stringify(meta))
})

test('both tools go with their plugin, and wait until processes can be started', async () => {
  const { ctx, before, plugin } = await setup()
  await plugin.dispose()
  assert.equal(ctx.tools.get('grep'), undefined)
  assert.equal(ctx.inspect().effects.length, before)
  const bare = await createHarness([])
  await bare.ctx.plugin(fs, { cwd: '/' })
  void bare.ctx.plugin(search, {}, { wait: true })
  assert.equal(bare.ctx.tools.get('grep'), undefined)
  await bare.ctx.plugin(subprocess, { env: {} })
  assert.notEqual(bare.ctx.tools.get('grep'), undefined)
  await assert.rejects(async () => bare.ctx.plugin(search, { globMaxResults: 0 }), { code: 'INVALID_CONFIG' })
})
