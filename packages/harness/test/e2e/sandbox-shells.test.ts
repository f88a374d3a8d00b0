import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { skipWithoutBwrap } from './bwrap.ts'
import { commandLines, commandLinesLeft, shareSandbox, whereAmI } from './shared-sandbox.ts'

const limits = { skip: skipWithoutBwrap(), timeout: 120_000 }

const child = [
  process.execPath,
  '--conditions=dsh-source',
  join(import.meta.dirname, 'sandbox-shells-child.ts'),
]

/**
 * What a command finds of itself and around it, but for numbers of processes, its marker and its outputs: these are
 * pipes with a name. A shared sandbox also lacks what bubblewrap leaves to its first program, a blocked SIGCHLD, and
 * its commands lead sessions of their own, as they do without a sandbox.
 */
const probe = String.raw`
exec 9<&-
echo "fds $(cd /proc/$$/fd && echo *)"
echo "stdin $(readlink /proc/$$/fd/0)"
trap -p; umask; ulimit -a; set -o; shopt; alias
echo "options $- argument0 $0 arguments $# level $SHLVL pwd $PWD old $OLDPWD"
export -p | grep -v DSH_PROCESS=
declare -F
read -r pid name state parent group session tty foreground flags rest < /proc/$$/stat
echo "name $name tty $tty $state"
grep -E '^(Sig(Pnd|Ign)|ShdPnd|Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups|Umask|Cpus_allowed_list)' /proc/$$/status
nice; cat /proc/$$/oom_score_adj; for n in user net ipc uts; do readlink /proc/$$/ns/$n | sed 's/\[.*//'; done
( : < /dev/tty ) 2>&1 | sed 's/.*: //'
id; hostname; ls -l /dev/null; mount | grep -v /dev/dsh
env -0 | tr '\0' '\n' | sort | grep -v '^DSH_PROCESS='
jobs; times >/dev/null; echo "last $?"
`

test('a command finds the same around it in a sandbox of its own and in one it shares', limits, async () => {
  await using world = await shareSandbox()
  // The first one takes names that are to be protected, which the next ones find.
  await world.run('true')
  const alone = await world.run(`${probe}${whereAmI}`)
  await world.warmUp()
  const shared = await world.run(`${probe}${whereAmI}`)
  const [where, own] = [shared, alone].map(({ stdout }) => stdout.trimEnd().split('\n').at(-1) ?? '')
  assert.match(where ?? '', /^\/dev\/dsh\//)
  assert.match(own ?? '', /^(pipe|socket):/)
  const [sharedFiles, aloneFiles] = [shared, alone].map(({ stdout }) => filesOf(stdout))
  // What this process happens to have inherited itself, a sandbox of its own may pass on.
  assert.deepEqual(
    sharedFiles?.filter(number => !aloneFiles?.includes(number)),
    [],
  )
  const rest = (text: string, place: string | undefined): string =>
    text.replace(/^fds .*\n/, '').replace(place ?? '', '')
  assert.equal(rest(shared.stdout, where), rest(alone.stdout, own))
  assert.equal(shared.stderr, alone.stderr)
  const session = 'read -r _ _ _ _ group session _ < /proc/$$/stat; echo $((group == $$ && session == $$))'
  assert.equal((await world.run(session)).stdout, '1\n')
})

function filesOf(probed: string): string[] {
  return /^fds (.*)\n/.exec(probed)?.[1]?.split(' ') ?? assert.fail('no list of open files')
}

test('a session with one command keeps no sandbox, one with more keeps one', limits, async () => {
  await using world = await shareSandbox()
  await world.run('true')
  assert.deepEqual(await commandLinesLeft(world.dir), [])
  await world.warmUp()
  const [, ...more] = commandLines(world.dir).filter(
    line => line.includes('bwrap') && !line.startsWith('/dev'),
  )
  assert.equal(more.length, 1, 'the one outside and the first process inside')
})

test('outputs of commands that run at once do not mix, and each has its own status', limits, async () => {
  await using world = await shareSandbox({ commands: 6 })
  await world.warmUp()
  let count = 0
  const piece = fc.record({
    bytes: fc.integer({ min: 0, max: 200_000 }),
    status: fc.integer({ min: 0, max: 255 }),
    isToErrors: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 9 }), async pieces => {
      const runs = pieces.map(async ({ bytes, status, isToErrors }) => {
        const word = `w${++count}.`
        const text = word.repeat(Math.ceil(bytes / word.length))
        const command = `yes ${word} | tr -d '\n' | head -c ${text.length} ${isToErrors ? '>&2' : ''}; exit ${status}`
        const { result, stdout, stderr } = await world.run(command)
        assert.deepEqual([result.exitCode, result.signal, result.survivors], [status, null, []])
        assert.ok((isToErrors ? stderr : stdout) === text, `${word} of ${text.length}`)
        assert.equal(isToErrors ? stdout : stderr, '')
      })
      await Promise.all(runs)
    }),
    { numRuns: 25 },
  )
  await world.warmUp()
})

test('nothing that a command does to its shell reaches the next one', limits, async () => {
  await using world = await shareSandbox()
  await world.warmUp()
  const cases: Record<string, readonly [stdout: string, status: number]> = {
    'exit 3': ['', 3],
    'exec true': ['', 0],
    'set -e; false; echo no': ['', 1],
    'set -u; echo $none': ['', 127],
    "trap 'echo bye' EXIT; kill -TERM $$": ['bye\n', 143],
    'kill -9 $$': ['', 137],
    'exec 1>&-; echo gone': ['', 1],
    'exec <&- >&- 2>&-; sleep 0.05; exit 4': ['', 4],
    'cd /; umask 077; ulimit -n 20; export LEFT=1; alias x=y; set -o posix': ['', 0],
    'echo "$LEFT $(umask) $PWD"': [` 0022 ${world.dir}\n`, 0],
    'echo a\necho b\n\n\necho c\n': ['a\nb\nc\n', 0],
    '# nothing but a remark': ['', 0],
    'cat <<E\nhere\nE': ['here\n', 0],
    "printf 'a\\0b\\377' | od -An -c": ['   a  \\0   b 377\n', 0],
    'echo to >/dev/stdout; echo "$0 $#"': ['to\n/usr/bin/bash 0\n', 0],
    'echo ended 0 >&0': ['', 1],
    'unset DSH_PROCESS; cat': ['', 0],
    if: ['', 2],
    'exit 300': ['', 44],
    ' \t': ['', 0],
    "echo ü ‮ 😀 $'\\n'": ['ü ‮ 😀 \n\n', 0],
  }
  for (const [command, [stdout, status]] of Object.entries(cases)) {
    const ended = await world.run(command)
    assert.deepEqual(
      [ended.stdout, ended.result.exitCode, ended.result.signal],
      [stdout, status, null],
      command,
    )
  }
  await world.warmUp()
  const odd = [`a b`, `new\nline`, `quo'te"$(touch x)\``, `-n`, `é\u{1f600}`, `back\\slash`]
  for (const name of odd) {
    const workdir = join(world.dir, name)
    fs.mkdirSync(workdir)
    const { stdout } = await world.run(`${whereAmI}; pwd`, { workdir })
    assert.equal(stdout.slice(stdout.indexOf('\n') + 1), `${workdir}\n`)
  }
  await assert.rejects(world.run('true', { workdir: join(world.dir, 'gone') }), { code: 'WORKDIR_NOT_FOUND' })
  await world.warmUp()
})

test('what does not fit runs in a sandbox of its own, with the same end as there', limits, async () => {
  await using world = await shareSandbox({ commands: 2 })
  await world.warmUp()
  const long = await world.run(`${whereAmI} #${'x'.repeat(100_000)}`)
  assert.match(long.stdout, /^(pipe|socket):/)
  await assert.rejects(world.run(`echo ${'x'.repeat(2 ** 20)}`), { code: 'E2BIG' })
  const many = await Promise.all(Array.from({ length: 5 }, () => world.run(`${whereAmI}; sleep 0.2`)))
  assert.equal(many.filter(({ stdout }) => stdout.startsWith('/dev/dsh/')).length, 2)
  assert.ok(many.every(({ result }) => result.exitCode === 0))
})

test('a command that is too late or unwanted ends alone, with all it started', limits, async () => {
  await using world = await shareSandbox()
  await world.warmUp()
  const nap = `sleep 73.${process.pid}`
  const beside = await world.start(`sleep 3; ${whereAmI}`)
  const cases = {
    [nap]: [143, null],
    [`trap '' TERM; ${nap}; ${nap}`]: [null, 'SIGKILL'],
    [`setsid ${nap} & (nohup ${nap} &) ; setsid sh -c "trap '' TERM; ${nap}; ${nap}" & ${nap}`]: [143, null],
    [`yes`]: [143, null],
    [`trap 'rm -f lock; echo bye; exit 7' TERM; touch lock; ${nap} & wait`]: [7, null],
  } as const
  for (const [command, [exitCode, signal]] of Object.entries(cases)) {
    const { result } = await world.run(command, { timeoutMs: 400 })
    assert.deepEqual([result.exitCode, result.signal, result.timedOut], [exitCode, signal, true], command)
    assert.deepEqual(await commandLinesLeft(nap), [], command)
  }
  const controller = new AbortController()
  const aborted = world.run(nap, { signal: controller.signal })
  while (commandLines(nap).length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  controller.abort()
  assert.equal((await aborted).result.aborted, true)
  assert.deepEqual(await commandLinesLeft(nap), [])
  const { stdout, exitCode } = await beside.result
  assert.equal(exitCode, 0)
  assert.match(stdout.readFrom(0).text, /^\/dev\/dsh\//)
  await world.warmUp()
})

test(
  'who ends all processes ends the sandbox: its commands say so, and the next has another',
  limits,
  async () => {
    await using world = await shareSandbox()
    await world.warmUp()
    const beside = world.run('sleep 60; echo no')
    while (commandLines('sleep 60').length === 0) await new Promise(resolve => setTimeout(resolve, 5))
    const { result } = await world.run('echo begun; kill -9 -1; sleep 60')
    assert.deepEqual([result.exitCode, result.signal, result.timedOut], [null, 'SIGKILL', false])
    assert.equal(result.stdout.readFrom(0).text, 'begun\n')
    assert.equal((await beside).result.signal, 'SIGKILL')
    assert.equal((await world.run('echo next')).stdout, 'next\n')
    await world.warmUp()
  },
)

test('a sandbox that was stopped is ended, and the command runs once', limits, async () => {
  await using world = await shareSandbox({ beginMs: 1000 })
  await world.warmUp()
  const { result } = await world.run('kill -STOP -1', { timeoutMs: 500 })
  // Whoever waits for it is stopped as well.
  assert.equal(result.timedOut, true)
  assert.deepEqual([result.exitCode, result.signal], [null, 'SIGKILL'])
  assert.equal((await world.run('echo once >> count; cat count')).stdout, 'once\n')
  await world.warmUp()
  await world.run('(sleep 0.2; kill -STOP 2) >/dev/null 2>&1 &')
  while (!isStopped()) await new Promise(resolve => setTimeout(resolve, 5))
  assert.equal((await world.run('echo twice >> count; cat count')).stdout, 'once\ntwice\n')
  await world.warmUp()

  function isStopped(): boolean {
    return fs.readdirSync('/proc').some(pid => {
      try {
        const isRunner = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('/dev/dsh/bash\0--norc')
        return isRunner && fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') T ')
      } catch {
        return false
      }
    })
  }
})

test('what a command leaves running is there for the next one, under its own number', limits, async () => {
  await using world = await shareSandbox()
  await world.warmUp()
  const port = 20_000 + (process.pid % 20_000)
  const server = `${process.execPath} -e "require('http').createServer((q, s) => s.end('served')).listen(${port}, '127.0.0.1', () => console.log('up'))"`
  const { result, stdout } = await world.run(
    `${server} > log 2>&1 & until grep -q up log; do :; done; echo started`,
  )
  assert.equal(stdout, 'started\n')
  assert.equal(result.survivors.length, 1)
  const get = `${process.execPath} -e "fetch('http://127.0.0.1:${port}').then(r => r.text()).then(console.log)"`
  const next = await world.run(get)
  assert.equal(next.stdout, 'served\n')
  assert.deepEqual(next.result.survivors, [], 'what was there before is not of this command')
  const left = await world.run(
    `setsid ${server.replace(String(port), String(port + 1))} >/dev/null 2>&1 & echo $!`,
  )
  assert.deepEqual(
    left.result.survivors.map(({ pid }) => `${pid}\n`),
    [left.stdout],
  )
  await world.run(`kill ${result.survivors[0]?.pid}`)
  assert.deepEqual(await commandLinesLeft(`listen(${port},`), [])
  await world.shells.dispose()
  assert.deepEqual(await commandLinesLeft(`listen(${port + 1},`), [])
})

test(
  'a world that changes has another sandbox, and the old one ends with its last command',
  limits,
  async () => {
    await using world = await shareSandbox()
    const nap = `sleep 74.${process.pid}`
    await world.warmUp()
    const old = await world.start(`touch begun; ${nap}; echo over`)
    world.ctx.sandboxPolicy.setMode(world.agent.session, 'read-only')
    const refused = await world.run('echo x > made')
    assert.match(refused.stderr, /Read-only file system/)
    await world.warmUp()
    assert.match((await world.run('echo x > made')).stderr, /Read-only file system/)
    assert.ok(commandLines(nap).length > 0)
    assert.ok(fs.existsSync(join(world.dir, 'begun')))
    await old.kill()
    assert.deepEqual(await commandLinesLeft(nap), [])
    world.ctx.sandboxPolicy.setMode(world.agent.session, 'workspace-write')
    await world.warmUp()
    fs.mkdirSync(join(world.dir, '.git/modules/sub'), { recursive: true })
    assert.match((await world.run('echo x > .git/modules/sub/config')).stderr, /Read-only file system/)
    await world.warmUp()
    assert.match((await world.run('echo x > .git/modules/sub/config')).stderr, /Read-only file system/)
  },
)

test('a protected file that is replaced outside is protected in the next command', limits, async () => {
  await using world = await shareSandbox()
  fs.mkdirSync(join(world.dir, '.git/hooks'), { recursive: true })
  const config = join(world.dir, '.git/config')
  fs.writeFileSync(config, '[core]\n')
  await world.warmUp()
  for (let round = 0; round < 3; round++) {
    fs.writeFileSync(`${config}.lock`, `[core]\n# ${round}\n`)
    fs.renameSync(`${config}.lock`, config)
    const { stderr } = await world.run('echo x >> .git/config')
    assert.match(stderr, /Read-only file system/)
    await world.warmUp()
  }
  fs.renameSync(join(world.dir, '.git'), join(world.dir, 'old'))
  fs.mkdirSync(join(world.dir, '.git/hooks'), { recursive: true })
  assert.match((await world.run('touch .git/hooks/pre-commit')).stderr, /Read-only file system/)
})

test('a call that may do more than its session runs alone', limits, async () => {
  await using world = await shareSandbox()
  await world.warmUp()
  const token = Symbol('call')
  world.ctx.sandboxPolicy.grant(token, 'network')
  for (let time = 0; time < 3; time++) {
    const { stdout } = await world.run(`${whereAmI}; readlink /proc/$$/ns/net`, { token })
    assert.match(stdout, /^(pipe|socket):/)
    assert.ok(stdout.includes(fs.readlinkSync('/proc/self/ns/net')))
  }
  await world.warmUp()
})

test(
  'nobody inside can look into what runs the commands, speak for it or reach its pipes',
  limits,
  async () => {
    await using world = await shareSandbox()
    await world.warmUp()
    const { stdout } = await world.run(
      [
        'for p in 2 $PPID; do',
        '  for f in environ mem maps fd/0 fd/1 exe cwd root; do cat /proc/$p/$f >/dev/null 2>&1 && echo "read $f of $p"; done',
        '  for f in 0 1 3 4; do (echo forged > /proc/$p/fd/$f) 2>/dev/null && echo "wrote $f of $p"; done',
        'done',
        'ls /dev/dsh; cat /dev/dsh/bash; touch /dev/dsh/x; chmod 777 /dev/dsh; rm -rf /dev/dsh; mv /dev/dsh /dev/d; umount /dev/dsh',
        'echo end',
      ].join('\n'),
    )
    assert.equal(stdout, 'end\n')
    await world.warmUp()
  },
)

test('an idle sandbox ends, but not while something is left running in it', limits, async () => {
  await using world = await shareSandbox({ idleMs: 50 })
  await world.warmUp()
  const { result } = await world.run('(sleep 0.4; touch over) >/dev/null 2>&1 &')
  assert.ok(result.survivors.length > 0)
  assert.deepEqual(await commandLinesLeft(world.dir), [])
  assert.ok(fs.existsSync(join(world.dir, 'over')), 'it came to its own end')
  const folder = join(world.home, 'tmp')
  const isThere = (): boolean =>
    fs.readdirSync(folder).some(name => fs.existsSync(join(folder, name, 'bash')))
  while (isThere()) await new Promise(resolve => setTimeout(resolve, 5))
  await world.warmUp()
})

for (const person of process.getuid?.() === 0 ? ['root', 'nobody'] : ['user'])
  test(`a program that is killed takes its sandbox along: as ${person}`, limits, async () => {
    const nap = `76.${process.pid}`
    const become: [string, ...string[]] =
      person === 'nobody' ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : ['env']
    const [program, ...args] = [...become, ...child, 'leave', nap]
    const host = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const timer = setTimeout(() => host.kill('SIGKILL'), 60_000)
    const [line] = (await once(host.stdout, 'data')) as [Buffer]
    const { isShared, outside } = JSON.parse(line.toString()) as { isShared: boolean; outside: string }
    assert.ok(isShared)
    assert.ok(commandLines(`sleep ${nap}`).length > 0)
    host.kill('SIGKILL')
    await once(host, 'close')
    clearTimeout(timer)
    assert.deepEqual(await commandLinesLeft(`sleep ${nap}`), [])
    assert.deepEqual(await commandLinesLeft(outside), [])
    for (const name of fs.readdirSync(join(outside, 'home/tmp')))
      fs.chmodSync(join(outside, 'home/tmp', name), 0o700)
    fs.rmSync(outside, { recursive: true })
  })

test(
  'three hundred hostile commands leave no process, no open file and no pipe behind',
  { ...limits, timeout: 240_000 },
  async t => {
    const [program, ...args] = [...child, 'census']
    const { stdout } = await promisify(execFile)(program, args, { timeout: 230_000, killSignal: 'SIGKILL' })
    t.diagnostic(stdout)
    const { runs, shared, folders, left, before, after } = JSON.parse(stdout)
    assert.ok(runs >= 300)
    // What others do on the machine may change the world meanwhile.
    assert.ok(shared >= runs / 2, `${shared} of ${runs} ran in a sandbox that they shared`)
    // The temporary folder of the session, that of the sandbox and that of the one before, which may be ending.
    assert.ok(folders <= 4)
    assert.deepEqual(left, [])
    assert.deepEqual([before.processes, after.processes], [1, 0])
    assert.ok(after.files <= before.files)
  },
)
