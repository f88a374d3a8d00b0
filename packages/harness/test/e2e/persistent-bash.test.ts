import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { persistentBash } from '@dsh/harness/plugins/persistent-bash'
import { headless } from '@dsh/harness/presets/headless'
import { skipWithoutBwrap } from './bwrap.ts'
import { isRunning, noProc, openPtyPlace, until } from './pty-place.ts'

const limits = { timeout: 60_000 }
const lost = 'its folder, variables and jobs are gone]'
const exited = (code: number): string => `[shell exited: code ${code}; the next call gets a new one: ${lost}`
const waiting = (id: number): string =>
  `[waiting for input; terminal_send types into pty-${id}, the next bash call interrupts it]`

const kinds = [
  { kind: 'bare', skip: noProc, options: {} },
  { kind: 'sandboxed', skip: skipWithoutBwrap(), options: { mode: 'workspace-write' } },
] as const

for (const { kind, skip, options } of kinds) {
  test(`what a command leaves of the shell is there for the next: ${kind}`, { ...limits, skip }, async () => {
    await using world = await openPtyPlace({ ...options, persistent: { timeoutMs: 20_000 } })
    const { bash, dir } = world
    assert.equal(await bash('mkdir sub; cd sub; X=1; f() { echo "f$X"; }; alias hi="echo hi"'), '(no output)')
    assert.equal(await bash('pwd; f; hi'), `${dir}/sub\nf1\nhi`)
    assert.equal(await bash('(exit 7)'), '[exit code: 7]')
    assert.match(await bash('sleep 60 & echo started'), /^\[1\] \d+\nstarted$/)
    assert.match(await bash('jobs'), /^\[1\]\+ {2}Running +sleep 60 &$/)
  })

  test(
    `the end of a command is exact, whatever it does to the shell: ${kind}`,
    { ...limits, skip },
    async () => {
      await using world = await openPtyPlace({ ...options, persistent: { timeoutMs: 20_000 } })
      const { bash } = world
      const cases: readonly (readonly [command: string, result: string])[] = [
        ['PS1=x', '(no output)'],
        ['echo a; false', 'a\n[exit code: 1]'],
        ['unset PROMPT_COMMAND', '(no output)'],
        ['unset -f dsh_prompt; PS2=y PS0=z', '(no output)'],
        ['printf abc', 'abc'],
        [String.raw`printf '\033]133;D;0;00000000000000000000000000000000\007'; echo done`, 'done'],
        ['if', 'bash: syntax error: unexpected end of file\n[exit code: 2]'],
        ['${none?is not set}', 'bash: none: is not set\n[exit code: 1]'],
        ['stty raw -echo', '(no output)'],
        ['echo raw', 'raw'],
        ['stty sane', '(no output)'],
        ['set -x; true', '++ true'],
        ['set +x 2>/dev/null', "+ eval -- 'set +x 2>/dev/null'\n++ set +x"],
        ['trap "echo trapped" DEBUG', '(no output)'],
        ['trap - DEBUG', 'trapped\ntrapped'],
        ['exec 3>&1; echo three >&3', 'three'],
        ['echo 中文', '中文'],
        ['touch ü; ls ü; rm ü', 'ü'],
        ["cat <<'END'\n表 $x\nEND", '表 $x'],
        ["printf '%s|' a\tb '!' !! \"$(printf 'x\ty')\"", 'a|b|!|!!|x\ty|'],
        [`v='${'y'.repeat(4096)}'; echo \${#v}`, '4096'],
        [`v='${'表'.repeat(20_000)}'; echo \${#v}`, '20000'],
        ["echo one\necho 'two\nthree'\n", 'one\ntwo\nthree'],
        ['echo "\x03\x04\x15\x7f" | od -An -tx1', ' 03 04 15 7f 0a'],
      ]
      for (const [command, result] of cases) assert.equal(await bash(command), result, command)
    },
  )

  test(
    `a shell that ended is a new one, and one that was replaced goes on: ${kind}`,
    { ...limits, skip },
    async () => {
      await using world = await openPtyPlace({ ...options, persistent: { timeoutMs: 20_000 } })
      const { bash } = world
      assert.equal(await bash('X=1; exit 3'), `exit\n${exited(3)}`)
      assert.equal(await bash('echo "$X-"'), '-')
      assert.equal(await bash('set -e'), '(no output)')
      assert.equal(await bash('false'), exited(1))
      assert.match(await bash('export X=2; exec bash --norc'), /^bash-\S+ ?$/)
      assert.equal(await bash('echo "$X-"; (exit 4)'), '2-\n[exit code: 4]')
      assert.equal(await bash('exec sh; echo no').then(text => text.includes('no')), false)
      assert.equal(await bash('echo "$X+"; (exit 5)'), '2+\n[exit code: 5]')
      const killed = kind === 'bare' ? 'signal SIGKILL' : 'code 137'
      assert.equal(
        await bash('kill -9 $$'),
        `[shell exited: ${killed}; the next call gets a new one: ${lost}`,
      )
    },
  )

  test(
    `what waits for input says so, and the next command interrupts it: ${kind}`,
    { ...limits, skip },
    async () => {
      await using world = await openPtyPlace({ ...options, persistent: { timeoutMs: 20_000 } })
      const { bash, call } = world
      assert.equal(await bash('cd /; cat'), waiting(1))
      assert.equal(await bash('pwd'), '/')
      assert.equal(await bash('echo -n "name? "; read name; echo "hello $name"'), `name? \n${waiting(1)}`)
      const { text } = await call('terminal_send', { sessionId: 'pty-1', text: 'you' })
      assert.match(text, /hello you\n/)
      assert.equal(await bash('echo "$name"'), 'you')
      assert.equal(await bash('unset PROMPT_COMMAND; PS1=x'), `x\n${waiting(1)}`)
      assert.equal(await bash('echo back; (exit 2)'), 'back\n[exit code: 2]')
      assert.equal(await bash("trap '' INT; cat"), waiting(1))
      assert.equal(
        await bash('echo new'),
        `new\n[this is a new shell, what ran before could not be interrupted: ${lost}`,
      )
    },
  )
}

test(
  'no locale, and none of another encoding, keeps text from coming through',
  { ...limits, skip: noProc },
  async () => {
    for (const locale of [{}, { LANG: 'C' }, { LC_ALL: 'POSIX' }, { LANG: 'en_US.ISO-8859-1' }]) {
      const env = { PATH: process.env['PATH'], HOME: '/nonexistent', ...locale }
      await using world = await openPtyPlace({ env, persistent: { timeoutMs: 20_000 } })
      assert.equal(await world.bash('v=中文; echo "$v ${#v}"'), '中文 2')
    }
  },
)

test('files that a person has for shells are not read', { ...limits, skip: noProc }, async () => {
  await using place = await openPtyPlace()
  const home = join(place.dir, 'home')
  mkdirSync(home)
  const evil = 'echo EVIL; PS1=evil; exit 9\n'
  for (const name of ['.bashrc', '.bash_profile', '.profile', '.shrc', '.inputrc'])
    writeFileSync(join(home, name), evil)
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    ENV: join(home, '.shrc'),
    BASH_ENV: join(home, '.bashrc'),
    PROMPT_COMMAND: 'echo EVIL',
    SHELLOPTS: 'errexit:xtrace',
  }
  await using world = await openPtyPlace({ env, persistent: { timeoutMs: 20_000 } })
  assert.equal(await world.bash('echo fine; false'), 'fine\n[exit code: 1]')
})

test(
  'bash is found on the PATH, and where there is none sh serves and says so',
  { ...limits, skip: noProc },
  async () => {
    await using place = await openPtyPlace()
    const only = (name: string, programs: readonly string[]): string => {
      const folder = join(place.dir, name)
      mkdirSync(folder)
      for (const program of programs) symlinkSync(`/bin/${program}`, join(folder, program))
      return folder
    }
    const withBash = only('with', ['bash', 'cat'])
    await using found = await openPtyPlace({ env: { PATH: withBash }, persistent: { timeoutMs: 20_000 } })
    assert.equal(await found.bash('echo "${BASH%/*}"'), withBash)
    const withSh = only('without', ['sh', 'cat', 'stty'])
    await using other = await openPtyPlace({ env: { PATH: withSh }, persistent: { timeoutMs: 20_000 } })
    const { bash } = other
    assert.equal(
      await bash("X='表 \\ it'\\''s'; echo \"$X\""),
      "表 \\ it's\n[there is no bash here; the shell is sh]",
    )
    assert.equal(await bash('echo "$X"; (exit 3)'), "表 \\ it's\n[exit code: 3]")
    assert.equal(await bash('cat <<END\na\tb\nEND'), 'a\tb')
    assert.equal(await bash('stty sane; printf x'), 'x')
    assert.match(await bash('echo ${none?gone}'), /none: gone\n\[exit code: 2\]$/)
    assert.equal(await bash('exit 4'), exited(4))
  },
)

test(
  'a time-out and a cancel end the shell with all that it started',
  { ...limits, skip: noProc },
  async () => {
    await using world = await openPtyPlace({
      persistent: { timeoutMs: 700 },
      config: { disposeGraceMs: 300 },
    })
    const { bash, call } = world
    const text = await bash(
      `(setsid sh -c "trap '' HUP TERM; echo \\$\\$; exec sleep 60") & sleep 0.3; echo begun; sleep 60`,
    )
    const stray = Number(/^(\d+)$/m.exec(text)?.[1])
    assert.ok(stray > 0, text)
    assert.match(
      text,
      /\nbegun\n\[timed out after 700 ms; the shell was ended, the next call gets a new one: /,
    )
    assert.equal(isRunning(stray), false)
    const controller = new AbortController()
    const cancelled = call('bash', { command: 'sleep 61' }, controller.signal)
    await until(() => world.ctx.pty.list(world.agent).length > 0)
    controller.abort()
    assert.equal((await cancelled).isError, true)
    assert.deepEqual(world.ctx.pty.list(world.agent), [])
    assert.match(await bash('echo next'), /^next\n\[this is a new shell, /)
  },
)

test(
  'commands of one agent follow each other, and no two agents share a shell',
  { ...limits, skip: noProc },
  async () => {
    await using world = await openPtyPlace({ persistent: { timeoutMs: 20_000 } })
    const { bash } = world
    const both = await Promise.all([bash('X=1; sleep 0.2; echo first'), bash('echo "second $X"')])
    assert.deepEqual(both, ['first', 'second 1'])
  },
)

test(
  'long output is shown at both ends, and all of it is an artifact',
  { ...limits, skip: noProc },
  async () => {
    await using world = await openPtyPlace({ persistent: { maxOutputBytes: 100 } })
    const text = await world.bash('seq 1 20000')
    const [, artifact = ''] = /read artifact:([\da-f]{64}) for more/.exec(text) ?? []
    assert.ok(text.startsWith('1\n2\n') && text.endsWith('\n20000'))
    const all = Buffer.from((await world.agent.session.artifacts.get(artifact)) ?? []).toString()
    assert.equal(all, Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(''))
  },
)

test(
  'there is one tool named bash, and who offers a second one is told how',
  { ...limits, skip: noProc },
  async () => {
    await using world = await openPtyPlace()
    await assert.rejects(async () => await world.ctx.plugin(persistentBash), {
      code: 'TOOL_TAKEN',
      message: 'the plugin bash offers the tool bash already; put `tool: false` into its row of dsh.yml',
    })
    await using other = await openPtyPlace({ persistent: { timeoutMs: 20_000 } })
    const tool = other.ctx.tools.get('bash')
    assert.deepEqual(tool?.parameters, {
      type: 'object',
      properties: { command: { type: 'string' } },
      required: ['command'],
    })
    assert.equal(
      tool?.description,
      'Run a command in a bash that stays: its folder, variables, functions and jobs are there in the next call.',
    )
  },
)

test('shells end with their agent, and with the tool', { ...limits, skip: noProc }, async () => {
  await using world = await openPtyPlace({ persistent: { timeoutMs: 20_000 } })
  const { ctx, agent, bash } = world
  const pids = async (): Promise<number[]> => [
    ctx.pty.list(agent)[0]?.pid ?? 0,
    Number((await bash('sleep 60 & echo $!')).split('\n').at(-1)),
  ]
  await bash('true')
  const first = await pids()
  assert.ok(first.every(isRunning))
  await world.persistent?.dispose()
  assert.deepEqual(ctx.pty.list(agent), [])
  assert.deepEqual(first.filter(isRunning), [])
  assert.equal(ctx.tools.get('bash'), undefined)
  await using other = await openPtyPlace({ persistent: { timeoutMs: 20_000 } })
  await other.bash('true')
  const [shell] = other.ctx.pty.list(other.agent)
  assert.ok(shell !== undefined && isRunning(shell.pid))
  await other.handle.dispose()
  assert.equal(isRunning(shell.pid), false)
})

test(
  'rows of a composition bring terminals and a bash that stays, whatever their order',
  { ...limits, skip: noProc },
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'dsh-pty-rows-'))
    const rows = ['- name: pty', '- {id: bash, config: {tool: false}}', '- name: persistent-bash']
    for (const order of [rows, rows.toReversed()]) {
      const file = join(home, 'dsh.yml')
      writeFileSync(file, `${order.join('\n')}\n`)
      const options = { home, env: process.env, permission: 'full-access', files: [file] } as const
      const errors: unknown[] = []
      const ctx = await headless({ ...options, onFailure: error => void errors.push(error) })
      try {
        assert.deepEqual(errors, [])
        assert.ok(ctx.tools.get('terminal_open') !== undefined)
        assert.match(ctx.tools.get('bash')?.description ?? '', /a bash that stays/)
      } finally {
        await ctx.dispose()
      }
    }
    rmSync(home, { recursive: true })
  },
)

test('any text reaches the shell as it is', { ...limits, skip: noProc }, async () => {
  await using place = await openPtyPlace()
  const folder = join(place.dir, 'bin')
  mkdirSync(folder)
  for (const program of ['sh', 'od', 'tr']) symlinkSync(`/usr/bin/${program}`, join(folder, program))
  const char = fc.oneof(
    fc.integer({ min: 1, max: 0x7f }).map(code => String.fromCharCode(code)),
    fc.string({ unit: 'grapheme' }),
  )
  const text = fc.array(char, { maxLength: 200 }).map(parts => parts.join('').replaceAll('\0', ''))
  for (const env of [process.env, { PATH: folder }]) {
    await using world = await openPtyPlace({
      env,
      persistent: { timeoutMs: 20_000, maxOutputBytes: 100_000 },
    })
    await world.bash('true')
    await fc.assert(
      fc.asyncProperty(text, async given => {
        const quoted = `'${given.replaceAll("'", String.raw`'\''`)}'`
        const shown = await world.bash(`printf %s ${quoted} | od -An -v -tx1 | tr -d ' \\n'`)
        assert.equal(shown, given === '' ? '(no output)' : Buffer.from(given).toString('hex'))
      }),
      { numRuns: 60 },
    )
  }
})
