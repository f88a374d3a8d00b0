import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { LocalSubprocess } from '@dsh/harness/plugins/subprocess'
import { skipWithoutBwrap } from './bwrap.ts'
import { isRunning, noProc, openPtyPlace, until } from './pty-place.ts'

const limits = { timeout: 60_000, skip: noProc }
const at = (reason: string): string => `\n[wait: ${reason}]\n[session: running]`
const atPrompt = at('stdin_read')
const open = { type: 'shell' }

const kinds = [
  { kind: 'bare', skip: noProc, options: {} },
  { kind: 'sandboxed', skip: skipWithoutBwrap(), options: { mode: 'workspace-write' } },
] as const

for (const { kind, skip, options } of kinds) {
  test(`a terminal tells exactly when a program waits: ${kind}`, { ...limits, skip }, async () => {
    await using world = await openPtyPlace({
      ...options,
      config: { idleSilenceMs: 30_000, timeoutMs: 50_000 },
    })
    const { send, call } = world
    const mode = kind === 'bare' ? 'not confined' : 'workspace-write'
    assert.match(
      (await call('terminal_open', open)).text,
      new RegExp(`^pty-1: shell, running as process \\d+, ${mode}$`),
    )
    assert.equal(await send('echo hi; (exit 3)'), `echo hi; (exit 3)\nhi\ndsh> \n[exit code: 3]${atPrompt}`)
    assert.equal(await send('cat'), `cat${atPrompt}`)
    assert.equal(await send('溝 é'), `溝 é\n溝 é${atPrompt}`)
    assert.equal(await send('', { keys: ['C-d'] }), `dsh> ${atPrompt}`)
    assert.equal(
      await send('read -p "go? " x; echo "<$x>"'),
      `read -p "go? " x; echo "<$x>"\ngo? ${atPrompt}`,
    )
    assert.equal(await send('yes'), `yes\n<yes>\ndsh> ${atPrompt}`)
    assert.equal(await send('python3 -c "print(input())"'), `python3 -c "print(input())"${atPrompt}`)
    assert.equal(await send('a\tb'), `a\tb\na\tb\ndsh> ${atPrompt}`)
    assert.match(
      await send('echo one\nsleep 0.3\necho two'),
      /(^|\n|> )one\n[^]*(\n|> )two\ndsh> \n\[wait: stdin_read\]/,
    )
    assert.equal(await send('PS1=x PROMPT_COMMAND='), `PS1=x PROMPT_COMMAND=\nx${atPrompt}`)
    assert.equal(await send('echo still'), `echo still\nstill\nx${atPrompt}`)
    assert.equal(await send('exit 4'), 'exit 4\nexit\n[wait: session_exit]\n[session: exited code=4]')
    assert.equal(await send('echo'), '(no output)\n[wait: session_exit]\n[session: exited code=4]')
  })

  test(
    `programs are interrupted, stopped and continued, and see the size they are told: ${kind}`,
    { ...limits, skip },
    async () => {
      await using world = await openPtyPlace(options)
      const { send, call, begin, line } = world
      await call('terminal_open', open)
      assert.equal(await send('stty size', { rows: 20, columns: 77 }), `stty size\n20 77\ndsh> ${atPrompt}`)
      await begin('sleep 50')
      await send('', { keys: ['C-z'] })
      await line(/Stopped +sleep 50$/)
      await begin('fg')
      const signal = async (name: string): Promise<string> =>
        (await call('terminal_signal', { sessionId: 'pty-1', signal: name })).text
      assert.equal(await signal('SIGINT'), 'SIGINT is sent')
      await send('echo "status $?"; tty </dev/tty; echo "flags $-"')
      await line(/status 130$/)
      await line(/\/dev\/tty$/)
      await line(/flags \w*m\w*$/)
      await begin('sleep 51')
      assert.equal(await signal('SIGKILL'), 'SIGKILL is sent')
      await send('echo "status $?"')
      await line(/status 137$/)
      assert.equal(
        await signal('SIGKILL'),
        'Error: SIGKILL would go to the shell itself; close the session instead',
      )
    },
  )
}

test('silence is told to be no more than that', limits, async () => {
  await using world = await openPtyPlace({ config: { idleSilenceMs: 300 } })
  await world.call('terminal_open', open)
  assert.equal(await world.send('sleep 50'), `sleep 50${at('inferred_idle; it may still be working')}`)
})

test('a prompt that belongs to an earlier command is no end of a later one', limits, async () => {
  await using world = await openPtyPlace()
  const { call, ctx, agent } = world
  await call('terminal_open', open)
  const type = (text: string, timeoutMs: number) =>
    ctx.pty.startSend(agent, 'pty-1', { text, submit: true, timeoutMs })
  assert.equal((await type('sleep 0.5', 100).result).wait, 'timeout')
  // Nothing of it prints, waits or takes the terminal, so that the shell looks as idle as at its prompt.
  const busy = type('for ((i = 0; i < 300000; i++)); do :; done; echo "e"nd; (exit 2)', 40_000)
  const { wait, exitCode } = await busy.result
  assert.deepEqual([wait, exitCode], ['stdin_read', 2])
  assert.match(busy.output.readFrom(0).text, /(> |\n)end\r\n/)
})

test('one thing is sent at a time, and what was cancelled is interrupted', limits, async () => {
  await using world = await openPtyPlace()
  const { call, send } = world
  await call('terminal_open', open)
  const controller = new AbortController()
  const running = call('terminal_send', { sessionId: 'pty-1', text: 'sleep 60' }, controller.signal)
  const { pty } = world.ctx
  await until(() => pty.read(world.agent, 'pty-1', {}).lines.includes('dsh> sleep 60'))
  const second = await call('terminal_send', { sessionId: 'pty-1', text: 'echo' })
  assert.equal(second.text, 'Error: something was sent that has not settled')
  controller.abort()
  assert.equal((await running).isError, true)
  assert.equal(await send('echo next'), `echo next\nnext\ndsh> ${atPrompt}`)
})

test(
  'more text than a program takes holds up nobody, and is forgotten with an interrupt',
  limits,
  async () => {
    await using world = await openPtyPlace()
    const { send, call, begin } = world
    await call('terminal_open', open)
    await begin('stty -echo; sleep 60')
    await send(`${'echo typed\n'.repeat(20_000)}`, { submit: false })
    await call('terminal_signal', { sessionId: 'pty-1', signal: 'SIGINT' })
    await send('stty sane')
    assert.match(await send('echo over'), /over\ndsh> \n\[wait: stdin_read\]/)
  },
)

test('a long line reaches a program that reads lines cut off, which the result says', limits, async () => {
  await using world = await openPtyPlace()
  const { send, call } = world
  await call('terminal_open', open)
  await send('read -r x; echo ${#x}')
  assert.match(await send('x'.repeat(6000)), /\n4095\ndsh> /)
  await send('cat > /dev/null')
  assert.match(await send('x'.repeat(6000)), /\[a program that reads lines gets at most 4095 bytes of one\]$/)
})

test('what prints without end is kept within bounds and can be interrupted', limits, async () => {
  const config = { idleSilenceMs: 300, timeoutMs: 700, scrollbackLines: 100, maxOutputBytes: 200 }
  await using world = await openPtyPlace({ config })
  const { send, call } = world
  await call('terminal_open', open)
  const flood = await send('yes 1234567')
  assert.match(flood, /^yes 1234567\n1234567\n[^]*bytes left out; read artifact:[\da-f]{64} for more/)
  assert.match(flood, /\[wait: timeout; it goes on\]\n\[session: running\]$/)
  await send('', { keys: ['C-c'] })
  const wide = await send("head -c 3000000 /dev/zero | tr '\\0' x")
  assert.ok(wide.length < 1000)
  const { text } = await call('terminal_read', { sessionId: 'pty-1', count: 5 })
  assert.ok(text.length < 1000, text)
  assert.match(text, /\[lines: \d+-\d+ of \d+; before \d+ nothing is kept\]/)
})

test('a send in the background is a task, which silence does not end', limits, async () => {
  await using world = await openPtyPlace({ config: { idleSilenceMs: 100 } })
  const { call, ctx, agent } = world
  await call('terminal_open', open)
  const args = { sessionId: 'pty-1', text: 'sleep 0.6; echo done; (exit 3)', run_in_background: true }
  assert.equal(
    (await call('terminal_send', args)).text,
    '[started in the background as pty-1; you are told when it ends, task_output shows what it prints]',
  )
  const task = await ctx.tasks.wait(agent, 'pty-1', { ms: 20_000 })
  assert.deepEqual([task.status, task.detail, task.label], ['failed', 'exit code 3', `pty-1: ${args.text}`])
  assert.match(ctx.tasks.readNew(agent, 'pty-1'), /\ndone\ndsh> $/)
  await call('terminal_send', { ...args, text: 'sleep 60' })
  assert.equal((await ctx.tasks.kill(agent, 'pty-2')).status, 'killed')
  assert.equal((await call('terminal_send', { sessionId: 'pty-1', text: 'echo on' })).isError, false)
})

test('a terminal ends with all that it started, whatever that does', limits, async () => {
  await using world = await openPtyPlace({ config: { disposeGraceMs: 300 } })
  const { call, send, ctx, agent } = world
  const start = async (id: string): Promise<number[]> => {
    await call('terminal_open', open)
    const script = [
      `(setsid sh -c "trap '' HUP TERM INT; echo \\$\\$; exec sleep 60" &);`,
      `env -i sh -c 'echo $$; exec sleep 60' &`,
      `(trap '' HUP; sh -c 'echo $$; exec sleep 60') & sleep 0.3`,
    ].join(' ')
    const { text } = await call('terminal_send', { sessionId: id, text: script })
    const pids = [...text.matchAll(/^(\d+)$/gm)].map(([pid]) => Number(pid))
    assert.equal(pids.length, 3, text)
    assert.deepEqual(pids.filter(isRunning), pids)
    return [...pids, ctx.pty.get(agent, id).pid]
  }
  const first = await start('pty-1')
  assert.equal((await call('terminal_close', { sessionId: 'pty-1' })).text, 'pty-1 is closed')
  assert.deepEqual(first.filter(isRunning), [])
  assert.match(await send('x'), /^Error: terminal "pty-1" is closed: it was closed by terminal_close$/)
  const second = await start('pty-2')
  await world.handle.dispose()
  assert.deepEqual(second.filter(isRunning), [])
})

test('terminals end with the service, and with the program however it ends', limits, async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'dsh-pty-host-')))
  const script = `
    import { LocalSubprocess } from '@dsh/harness/plugins/subprocess'
    const [, ledger, end] = process.argv
    const service = new LocalSubprocess({ env: { PATH: process.env.PATH }, pass: [], ledger })
    process.prependListener('exit', () => service.killAll())
    const argv = ['bash', '--noprofile', '--norc', '--noediting', '-i']
    const terminal = await service.spawnTerminal({ argv, cwd: '/', rows: 40, columns: 160, graceMs: 300 })
    terminal.output.on('data', bytes => process.stdout.write(bytes))
    terminal.write("PS1=; stty -echo; setsid sh -c \\"trap '' HUP TERM; echo \\\\$\\\\$; exec sleep 60\\" & setsid sh -c 'echo $$; exec sleep 60' & echo $$ ; sleep 60\\n")
    process.on('SIGUSR1', () => end === 'close' ? service.close().then(() => process.exit()) : Promise.reject(new Error('thrown')))
    setInterval(() => {}, 1000)`
  const hostOf = async (ledger: string, end: string) => {
    const args = ['--conditions=dsh-source', '--input-type=module', '-e', script, ledger, end]
    const host = spawn(process.execPath, args, {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const limit = setTimeout(() => host.kill('SIGKILL'), 50_000)
    const exited = once(host, 'exit').then(() => clearTimeout(limit))
    let printed = ''
    host.stdout.on('data', bytes => (printed += String(bytes)))
    const pids = (): number[] => [...printed.matchAll(/^(\d+)\r$/gm)].map(([, pid]) => Number(pid))
    await until(() => pids().length >= 3)
    assert.deepEqual(pids().filter(isRunning), pids())
    return { host, exited, pids: pids() }
  }
  try {
    for (const end of ['close', 'throw']) {
      const { host, exited, pids } = await hostOf(join(base, end), end)
      host.kill('SIGUSR1')
      await exited
      await until(() => !pids.some(isRunning))
      assert.deepEqual(readdirSync(join(base, end)), [])
    }
    const ledger = join(base, 'kill')
    const { host, exited, pids } = await hostOf(ledger, 'close')
    host.kill('SIGKILL')
    await exited
    await new LocalSubprocess({ env: { PATH: process.env['PATH'] }, pass: [], ledger }).reap()
    assert.deepEqual(pids.filter(isRunning), [])
    assert.deepEqual(readdirSync(ledger), [])
  } finally {
    rmSync(base, { recursive: true })
  }
})

test(
  'a shell is held to the mode it was opened under, and closed when its session may do less',
  { ...limits, skip: skipWithoutBwrap() },
  async () => {
    await using world = await openPtyPlace({ mode: 'workspace-write' })
    const { call, ctx, agent, dir } = world
    const sent = async (sessionId: string, text: string): Promise<string> =>
      (await call('terminal_send', { sessionId, text })).text
    await call('terminal_open', open)
    assert.match(await sent('pty-1', 'touch inside; touch /var/tmp/outside'), /Read-only file system/)
    assert.ok(existsSync(join(dir, 'inside')))
    ctx.sandboxPolicy.setMode(agent.session, 'full-access')
    assert.match(await sent('pty-1', 'touch /var/tmp/outside'), /Read-only file system/)
    await call('terminal_open', { ...open, name: 'free' })
    assert.match(
      (await call('terminal_list', {})).text,
      /^pty-1: .*, workspace-write\npty-2 free: .*, full-access$/,
    )
    const pid = ctx.pty.get(agent, 'pty-2').pid
    ctx.sandboxPolicy.setMode(agent.session, 'workspace-write')
    assert.equal(
      await sent('pty-2', 'echo'),
      'Error: terminal "pty-2" is closed: it was opened under full-access, and the session is workspace-write now',
    )
    await until(() => !isRunning(pid))
    assert.match(await sent('pty-1', 'echo on'), /\non\n/)
  },
)

test(
  'what was granted to the call that opens a shell is not granted to the shell',
  { ...limits, skip: skipWithoutBwrap() },
  async () => {
    await using world = await openPtyPlace({ mode: 'read-only' })
    const { call, ctx } = world
    ctx.on('tools/pre-execute', async (execution, next) => {
      ctx.sandboxPolicy.grant(execution.token, 'full-access')
      return await next()
    })
    assert.match((await call('terminal_open', open)).text, /, read-only$/)
    assert.match(await world.send('touch x'), /Read-only file system/)
  },
)

test('folders and shells that are not there are told', limits, async () => {
  await using world = await openPtyPlace()
  const { call, dir } = world
  assert.equal(
    (await call('terminal_open', { ...open, cwd: 'none' })).text,
    `Error: no folder "${dir}/none" to work in`,
  )
  assert.equal(
    (await call('terminal_open', { type: 'x' })).text,
    'Error: no terminals of type "x"; there are "shell"',
  )
  mkdirSync(join(dir, 'sub'))
  await call('terminal_open', { ...open, cwd: 'sub' })
  await using bare = await openPtyPlace({ env: { PATH: '/nonexistent' } })
  assert.equal((await bare.call('terminal_open', open)).text, 'Error: no program "sh"')
})

test(
  'where terminals cannot be loaded a shell has pipes, says why, and runs commands all the same',
  limits,
  async () => {
    const hooks = registerHooks({
      resolve(specifier, context, next) {
        if (specifier === '@lydell/node-pty') throw new Error('no build for this machine')
        return next(specifier, context)
      },
    })
    try {
      await using world = await openPtyPlace()
      const { call, send } = world
      assert.match(
        (await call('terminal_open', open)).text,
        /\n\[there is no terminal here, only pipes: no build for this machine\. Commands run; keys, sizes and programs that need a terminal do not work\. To mend it, install the optional package @lydell\/node-pty\.\]$/,
      )
      assert.match(await send('echo 中文; test -t 0; echo $?'), /^中文\n1\ndsh> \n\[wait: stdin_read\]/)
      assert.match(await send('(exit 3)'), /^dsh> \n\[exit code: 3\]/)
      assert.match(await send('exit 5'), /\[session: exited code=5\]$/)
    } finally {
      hooks.deregister()
    }
  },
)
