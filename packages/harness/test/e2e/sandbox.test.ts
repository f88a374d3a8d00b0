import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { judgeConfined, sandbox } from '@dsh/harness/plugins/sandbox'
import type { ConfineOptions, SandboxMode } from '@dsh/harness/plugins/sandbox'
import { createHarness } from '@dsh/harness/testing'
import type { WiderAccess } from '@dsh/harness/tools'
import { bubblewrap, nobody, openPlace } from './sandbox-place.ts'

const isMissing = !fs.existsSync(bubblewrap) && process.env['CI'] !== 'true'
const skip = process.platform !== 'linux' ? 'bubblewrap is of Linux' : isMissing ? `no ${bubblewrap}` : false
const timeout = 20_000

interface Call {
  readonly mode?: SandboxMode
  readonly access?: WiderAccess
  readonly options?: ConfineOptions
}

/** Sessions in folders below `parent`, with the whole plugin. */
/** Without what a run of npm sets for its scripts. */
const plainEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith('npm_')),
)

async function setup({ parent = '/var/tmp' }: { readonly parent?: string } = {}) {
  const base = fs.realpathSync(fs.mkdtempSync(join(parent, 'dsh-sandbox-')))
  const dir = join(base, 'work')
  fs.mkdirSync(dir)
  const { ctx } = await createHarness()
  const plugin = ctx.plugin(sandbox, { home: join(base, 'home') })
  await plugin
  let count = 0
  return {
    ctx,
    plugin,
    base,
    dir,
    async open() {
      const { agent } = await ctx.agents.create({ sessionId: SessionId(`s${++count}`), meta: { cwd: dir } })
      const { session } = agent
      return async (command: string, { mode, access, options }: Call = {}) => {
        if (mode !== undefined) ctx.sandboxPolicy.setMode(session, mode)
        const token = Symbol('call')
        if (access !== undefined) ctx.sandboxPolicy.grant(token, access)
        const policy = await ctx.sandboxPolicy.resolve({ session, token })
        const confined = await ctx.sandbox.confine(['/bin/bash', '-c', command], policy, options)
        const [program, ...args] = confined.argv
        const ended = spawnSync(program, args, {
          cwd: dir,
          env: plainEnv,
          encoding: 'utf8',
          timeout,
          killSignal: 'SIGKILL',
        })
        const { status: exitCode, signal, stdout, stderr } = ended
        const judgement = judgeConfined({ exitCode, signal, stderr, confined })
        return { exitCode, stdout, stderr, judgement: judgement?.kind, enforcement: confined.enforcement }
      }
    },
    async [Symbol.asyncDispose]() {
      await ctx.dispose()
      fs.rmSync(base, { recursive: true, force: true })
    },
  }
}

test('a machine with bubblewrap is ready, and says by what', { skip }, async () => {
  await using world = await setup()
  assert.deepEqual(await world.ctx.sandbox.readiness(), {
    isReady: true,
    runner: 'bubblewrap',
    enforcement: 'full',
  })
})

test('the workspace is written in workspace-write and only looked at in read-only', { skip }, async () => {
  for (const parent of ['/var/tmp', '/tmp']) {
    await using world = await setup({ parent })
    const run = await world.open()
    assert.deepEqual(await run('echo one > a; cat a; echo x > /dev/null'), {
      exitCode: 0,
      stdout: 'one\n',
      stderr: '',
      judgement: undefined,
      enforcement: 'full',
    })
    const denied = await run('cat a; echo two > a', { mode: 'read-only' })
    assert.equal(denied.stdout, 'one\n')
    assert.match(denied.stderr, /Read-only file system/)
    assert.equal(denied.judgement, 'denied')
    assert.equal(fs.readFileSync(join(world.dir, 'a'), 'utf8'), 'one\n')
    assert.equal((await run('echo x > "$TMPDIR/t" && cat "$TMPDIR/t"')).stdout, 'x\n')
    assert.equal((await run('echo two > a', { access: 'workspace-write' })).exitCode, 0)
  }
})

test('full access is the command as it is', { skip }, async () => {
  await using world = await setup()
  const run = await world.open()
  const outside = join(world.base, 'outside')
  assert.equal((await run(`echo x > ${outside}`, { access: 'full-access' })).exitCode, 0)
  assert.equal(fs.readFileSync(outside, 'utf8'), 'x\n')
})

test('/tmp lasts from command to command of a session, and no other sees it', { skip }, async () => {
  await using world = await setup({ parent: '/tmp' })
  const [run, other] = [await world.open(), await world.open()]
  assert.equal((await run('echo x > /tmp/a; cat "$TMPDIR/a"')).stdout, 'x\n')
  assert.equal((await run('cat /tmp/a')).stdout, 'x\n')
  assert.equal((await other('cat /tmp/a')).exitCode, 1)
  assert.equal((await run(`ls ${world.base}`)).stdout, 'home\nwork\n', 'only what is mounted is there')
  const temps = fs.readdirSync(join(world.base, 'home/tmp')).filter(name => !name.includes('.'))
  assert.equal(temps.length, 2)
  await world.plugin.dispose()
  assert.deepEqual(fs.readdirSync(join(world.base, 'home/tmp')), [])
})

test('folders of programs that ended without it are swept', { skip }, async () => {
  await using world = await setup()
  const left = join(world.base, 'home/tmp/4194305-0123456789ab')
  fs.mkdirSync(left, { recursive: true })
  await (
    await world.open()
  )('true')
  assert.equal(fs.existsSync(left), false)
})

test('the network comes with a grant, and is off without', { skip }, async () => {
  await using world = await setup()
  const run = await world.open()
  const interfaces = 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " " | sort | tr "\\n" " "'
  assert.equal((await run(interfaces)).stdout, 'lo ')
  const own = spawnSync('/bin/bash', ['-c', interfaces], { encoding: 'utf8', timeout }).stdout
  assert.equal((await run(interfaces, { access: 'network' })).stdout, own)
  assert.equal((await run(interfaces, { mode: 'read-only', access: 'network' })).stdout, own)
})

test('caches of tools can be written, and are those of the session', { skip }, async () => {
  await using world = await setup()
  const [run, other] = [await world.open(), await world.open()]
  const look = 'echo "$npm_config_cache"; ls -A "$XDG_CACHE_HOME/tool"'
  assert.equal((await run('mkdir "$XDG_CACHE_HOME/tool" && touch "$XDG_CACHE_HOME/tool/x"')).exitCode, 0)
  assert.equal((await run(look)).stdout, '\nx\n')
  assert.equal((await other(look)).exitCode, 2)
  const [, temp = ''] = /^(.+)\/npm$/m.exec((await run(look, { access: 'network' })).stdout) ?? []
  assert.equal((await run(look)).stdout, `${temp}/npm\nx\n`, 'what was fetched is found without network')
  assert.equal((await other('echo "$npm_config_cache"')).stdout, '\n')
  const plant = `rm -r ${temp}; ln -s ${world.base} ${temp}`
  assert.equal((await run(plant)).exitCode, 0)
  await run('true', { access: 'network' })
  assert.deepEqual(fs.readdirSync(world.base), ['home', 'work'], 'nothing is made where links lead')
})

test('names that nobody had are free again in the end, and git sees none of them', { skip }, async () => {
  await using world = await setup()
  const run = await world.open()
  const made = await run('git init -q . || git init -q repo && cd repo && git status -s && ls -A ..')
  assert.match(made.stderr, /work\/\.git\/.*: Read-only file system/)
  assert.equal(made.stdout, '.claude\n.codex\n.dsh\n.envrc\n.git\n.idea\n.vscode\nrepo\n')
  assert.match((await run('ls -A .envrc; echo x > .envrc/x')).stderr, /x: Read-only file system/)
  await world.plugin.dispose()
  assert.deepEqual(fs.readdirSync(world.dir), ['repo'])
  assert.deepEqual(fs.readdirSync(join(world.base, 'home/tmp')), [])
})

test('git stashes, cleans and adds untracked files beside names that are taken', { skip }, async () => {
  await using world = await setup()
  const run = await world.open()
  const git = (...args: string[]) => spawnSync('git', args, { cwd: world.dir, encoding: 'utf8', timeout })
  git('init', '-q')
  git('-c', 'user.name=me', '-c', 'user.email=me@invalid', 'commit', '-q', '--allow-empty', '-m', 'first')
  const identity = 'git -c user.name=me -c user.email=me@invalid'
  const command = `echo x > new; git status -s; ${identity} stash -qu; git status -s; git stash pop -q > /dev/null; git add -A; git status -s; git rm -q --cached new; git clean -fdq; ls`
  assert.deepEqual(await run(command), {
    exitCode: 0,
    stdout: '?? new\nA  new\n',
    stderr: '',
    judgement: undefined,
    enforcement: 'full',
  })
  assert.equal(git('status', '-s').stdout, '', 'nor does git outside')
})

test(
  'a protected name that is a link is held where it leads, and said to be held in part',
  { skip },
  async () => {
    await using world = await setup()
    fs.mkdirSync(join(world.dir, 'editor'))
    fs.symlinkSync('editor', join(world.dir, '.vscode'))
    const run = await world.open()
    const { stderr, enforcement } = await run('echo x > .vscode/tasks.json; echo x > editor/tasks.json')
    assert.equal(stderr.match(/Read-only file system/g)?.length, 2)
    assert.equal(enforcement, 'partial')
  },
)

test(
  'a command that does not exist is no denial, and a runner that cannot start is told',
  { skip },
  async () => {
    await using world = await setup()
    const run = await world.open()
    assert.equal((await run('nothing-of-this-name')).judgement, undefined)
    assert.equal((await run('grep -q x /dev/null')).judgement, undefined)
    const policy = await world.ctx.sandboxPolicy.resolve({})
    const [program, ...args] = (await world.ctx.sandbox.confine(['/nowhere/program'], policy)).argv
    const { status: exitCode, stderr } = spawnSync(program, args, { cwd: '/', encoding: 'utf8', timeout })
    const confined = await world.ctx.sandbox.confine(['true'], policy)
    assert.equal(judgeConfined({ exitCode, signal: null, stderr, confined })?.kind, 'runner-failed')
  },
)

test('a terminal of its own stays the controlling one', { skip }, async () => {
  await using world = await setup()
  const run = await world.open()
  const session = 'ps -o sid= -p $$ | tr -d " "'
  const inside = (await run(session, { options: { terminal: true } })).stdout.trim()
  assert.notEqual(inside, (await run(session)).stdout.trim())
})

const isRoot = process.getuid?.() === 0
const skipUser = skip === false && !isRoot ? 'only root becomes somebody else' : skip

test('an ordinary user confines as root does', { skip: skipUser }, async () => {
  await using place = await openPlace({ uid: nobody })
  const source = (name: string): string => new URL(`../../src/plugins/sandbox/${name}`, import.meta.url).href
  const script = `import { LocalSandbox } from "${source('local.ts')}"
import { thisMachine } from "${source('env.ts')}"
console.log(JSON.stringify(await new LocalSandbox(thisMachine()).readiness()))`
  const { output, stderr } = await place.bare(
    `"$NODE" --conditions=dsh-source --input-type=module -e '${script}'`,
  )
  assert.equal(stderr, '')
  assert.deepEqual(JSON.parse(output), { isReady: true, runner: 'bubblewrap', enforcement: 'full' })
})
