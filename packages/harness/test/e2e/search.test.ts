import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fs as files } from '../../src/plugins/fs/index.ts'
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
