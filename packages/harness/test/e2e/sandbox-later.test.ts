import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import { bash } from '../../src/plugins/bash/index.ts'
import { fs as files } from '../../src/plugins/fs/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { createHarness } from '../../src/testing/index.ts'
import { skipWithoutBwrap } from './bwrap.ts'
import { escapeTables } from './sandbox-escapes.ts'
import type { Escape } from './sandbox-escapes.ts'

const limits = { skip: skipWithoutBwrap(), timeout: 60_000 }
const section = 'What runs later, outside'

const inHome: Escape = {
  section,
  name: 'change `~/.bashrc`, `~/.gitconfig` or `~/.config/autostart`, where the session is in the home folder or above it',
  command:
    'echo x >> .bashrc; git config -f .gitconfig core.pager x; mkdir -p .config/autostart; echo x > new',
  holder: 'such a folder is no workspace: it is mounted read-only, and file tools ask before each write',
}
const byGitlink: Escape = {
  section,
  name: 'record a repository of its own in the index, whose configuration `git status` obeys',
  command:
    'git init -q nested && cd nested && git -c user.name=n -c user.email=e commit -q --allow-empty -m x && git config core.fsmonitor "touch $PWD/../pwned" && cd .. && git add nested',
  holder:
    '**not prevented**: the result names it, for the model and the person, and its configuration and hooks are held from then on',
}

async function setup(folder: 'home' | 'home/project' | '/' = 'home/project') {
  const base = fs.realpathSync(fs.mkdtempSync('/var/tmp/dsh-later-'))
  const home = join(base, 'home')
  const project = join(home, 'project')
  fs.mkdirSync(project, { recursive: true })
  fs.writeFileSync(join(home, '.bashrc'), '')
  const before = process.env['HOME']
  process.env['HOME'] = home
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, GIT_CONFIG_GLOBAL: '/dev/null' }
  const outside = (...argv: readonly [string, ...string[]]) => {
    const [program, ...args] = argv
    return spawnSync(program, args, { cwd: project, env, encoding: 'utf8', timeout: 20_000 })
  }
  outside('git', 'init', '-q')
  const { ctx } = await createHarness()
  await ctx.plugin(files)
  await ctx.plugin(subprocess, { env })
  await ctx.plugin(sandbox)
  await ctx.plugin(bash)
  const cwd = folder === '/' ? '/' : join(base, folder)
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd } })
  let calls = 0
  const call = async (name: string, args: object): Promise<string> => {
    const { signal } = new AbortController()
    const input = { callId: CallId(`c${++calls}`), name, arguments: args, signal, agent }
    const { content } = await ctx.tools.execute(input)
    return content.map(block => (block.type === 'text' ? block.text : '')).join('')
  }
  return {
    ctx,
    home,
    project,
    outside,
    call,
    run: (command: string) => call('bash', { command, description: 'try it' }),
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      process.env['HOME'] = before
      fs.rmSync(base, { recursive: true, force: true })
    },
  }
}

test('in a home folder, and above it, nothing is changed that would run outside later', limits, async () => {
  for (const folder of ['home', '/'] as const) {
    await using world = await setup(folder)
    const prefix = folder === '/' ? `cd ${world.home}; ` : ''
    const denied = await world.run(prefix + inHome.command)
    assert.match(denied, /Read-only file system/)
    assert.match(
      denied,
      /\[sandbox: file access denied under workspace-write mode: \S+ is a home folder or lies above one, and nothing there is written unasked; dsh should be started in a project folder\]/,
    )
    const path = join(world.home, '.bashrc')
    assert.match(
      await world.call('write', { file_path: path, content: 'x' }),
      /cannot be written: \S+ is a home/,
    )
    assert.deepEqual(fs.readdirSync(world.home).toSorted(), ['.bashrc', 'project'])
    assert.equal(fs.readFileSync(path, 'utf8'), '')
    assert.equal(await world.run('echo x > "$TMPDIR/own" && cat "$TMPDIR/own"'), 'x')
  }
})

test('a repository that a command records in the index is named, and held from then on', limits, async () => {
  await using world = await setup()
  const told: (readonly string[])[] = []
  world.ctx.on('sandbox/planted', (_agent, paths) => void told.push(paths))
  assert.match(await world.run(byGitlink.command), /\[sandbox: the index now records nested as a repository/)
  assert.deepEqual(told, [['nested']])
  assert.match(await world.run('git -C nested config core.pager x'), /could not (lock|write) config file/)
  assert.match(await world.run('echo x > nested/.git/hooks/post-index-change'), /Read-only file system/)
  assert.deepEqual(told.length, 1)
  const pwned = join(world.project, 'pwned')
  world.outside('git', 'status', '--ignore-submodules=all')
  assert.equal(fs.existsSync(pwned), false, 'as the guide says')
  world.outside('git', 'status')
  assert.equal(fs.existsSync(pwned), true, 'or it need not be told')
})

test('the page lists these too', () => {
  const page = fs.readFileSync(
    new URL('../../../../docs/reference/sandbox-escapes.md', import.meta.url),
    'utf8',
  )
  assert.ok(page.includes(escapeTables([inHome, byGitlink])), escapeTables([inHome, byGitlink]))
})
