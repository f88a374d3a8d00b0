import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRipgrep } from '../../src/plugins/search/ripgrep.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'

/** A sleep that can be told from those of other tests. */
const nap = `sleep 300.${process.pid}`

/** Searches with a shell script in the place of ripgrep; what ends late is ended. */
async function setup(script?: string) {
  const dir = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'dsh-search-')))
  const { ctx } = await createHarness([])
  await ctx.plugin(subprocess, { env: process.env })
  const program = join(dir, 'program')
  if (script !== undefined) fs.writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  let output = ''
  return {
    dir,
    ripgrep: createRipgrep(ctx, async () => program),
    /** What came until the search ended. */
    async run(
      args: readonly string[] = [],
      signal: AbortSignal = AbortSignal.timeout(20_000),
      stopAt = Infinity,
    ) {
      output = ''
      const end = await createRipgrep(
        ctx,
        async () => program,
      )({
        args,
        cwd: dir,
        signal,
        onOutput: bytes => ((output += bytes.toString()).length < stopAt ? 'go on' : 'stop'),
      })
      return { ...end, output }
    },
    ctx,
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(dir, { recursive: true, force: true })
    },
  }
}

test('the program gets plain arguments, no configuration, and the folder of the session', async () => {
  await using world = await setup('printf "%s\\n" "$@"; pwd; cat')
  const { output } = await world.run(['--regexp=$(x)', '--', './-a b'])
  assert.equal(
    output,
    [
      '--no-config',
      '--color=never',
      '--hidden',
      '--no-ignore-global',
      '--no-require-git',
      ...['.git', '.svn', '.hg', '.bzr', '.jj', '.sl'].map(name => `--glob=!${name}`),
      '--regexp=$(x)',
      '--',
      './-a b',
      world.dir,
      '',
    ].join('\n'),
  )
})

test('an end without a match is a success, and so is one past what could not be read', async () => {
  await using none = await setup('exit 1')
  assert.deepEqual(await none.run(), { isStopped: false, unreadable: 0, output: '' })
  await using some = await setup(
    'echo found; echo "rg: ./a: Permission denied (os error 13)" >&2; echo "rg: ./b: No such file or directory (os error 2)" >&2; exit 2',
  )
  assert.deepEqual(await some.run(), { isStopped: false, unreadable: 2, output: 'found\n' })
})

test('so much that could not be read that not all of it is kept is no failure either', async () => {
  await using world = await setup(
    'echo found; yes "rg: ./a: Permission denied (os error 13)" | head -n 5000 >&2; exit 2',
  )
  const { unreadable, output } = await world.run()
  assert.equal(output, 'found\n')
  assert.ok(unreadable > 1000, `${unreadable}`)
})

test('every other end is a failure that says what the program said', async () => {
  const cases = {
    'echo "rg: regex parse error:" >&2; exit 2': ['SEARCH_INVALID_PATTERN', 'regex parse error:'],
    'echo "rg: error parsing glob x" >&2; exit 2': ['SEARCH_INVALID_PATTERN', 'error parsing glob x'],
    'echo "rg: boom" >&2; exit 2': ['SEARCH_FAILED', 'ripgrep ended with exit code 2 with: boom'],
    'exit 101': ['SEARCH_FAILED', 'ripgrep ended with exit code 101 and said nothing'],
    'kill -KILL $$': ['SEARCH_FAILED', 'ripgrep was killed by SIGKILL'],
  }
  for (const [script, [code, message]] of Object.entries(cases)) {
    await using world = await setup(script)
    await assert.rejects(world.run(), { name: 'SearchError', code, message })
  }
})

test('a missing program fails each call until it is there, and nothing before', async () => {
  await using world = await setup()
  await assert.rejects(world.run(), { code: 'SEARCH_FAILED', message: /^cannot start ripgrep: / })
  let tries = 0
  const lost = createRipgrep(world.ctx, async () => {
    if (++tries < 3) throw new Error('no package for this system')
    return '/bin/true'
  })
  const run = () =>
    lost({ args: [], cwd: world.dir, signal: AbortSignal.timeout(20_000), onOutput: () => 'go on' })
  const message = 'there is no ripgrep to search with: no package for this system'
  await assert.rejects(run(), { code: 'SEARCH_FAILED', message })
  await assert.rejects(run(), { code: 'SEARCH_FAILED', message })
  assert.deepEqual(await run(), { isStopped: false, unreadable: 0 })
  await run()
  assert.equal(tries, 3, 'once found it is not looked for again')
})

test('a search that is cancelled never starts, or ends its program and all it started', async () => {
  await using world = await setup(`${nap} & echo up; wait`)
  await assert.rejects(world.run([], AbortSignal.abort()), { code: 'SEARCH_ABORTED' })
  const stop = new AbortController()
  const going = world.ripgrep({
    args: [],
    cwd: world.dir,
    signal: stop.signal,
    onOutput() {
      stop.abort()
      return 'go on'
    },
  })
  await assert.rejects(going, { code: 'SEARCH_ABORTED', message: 'the search was cancelled' })
  assert.equal(spawnSync('pgrep', ['-f', nap], { timeout: 20_000 }).status, 1, 'nothing of it lives')
})

test('a search that has enough ends its program', async () => {
  await using world = await setup('yes needle')
  const { isStopped, output } = await world.run([], undefined, 10_000)
  assert.equal(isStopped, true)
  assert.ok(output.length >= 10_000)
})
