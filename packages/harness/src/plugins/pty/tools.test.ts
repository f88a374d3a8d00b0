import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionId } from '@dsh/protocol'
import { createHarness } from '../../testing/index.ts'
import { subprocess } from '../subprocess/index.ts'
import { tasks } from '../tasks/index.ts'
import { pty } from './index.ts'
import { closedText, listText, openedText, pageText, sentText } from './texts.ts'

const names = [
  'terminal_close',
  'terminal_list',
  'terminal_open',
  'terminal_read',
  'terminal_send',
  'terminal_signal',
]

async function setup() {
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess, { env: {} })
  await ctx.plugin(tasks)
  const plugin = ctx.plugin(pty)
  await plugin
  return { ctx, plugin }
}

const id = { sessionId: { type: 'string' } }

test('the tools of terminals are these, and none is offered before it is asked for', async () => {
  const { ctx } = await setup()
  const seen = names.map(name => {
    const tool = ctx.tools.get(name) ?? assert.fail(`there is no ${name}`)
    assert.equal(tool.deferred, true)
    const { properties, required } = tool.parameters
    return { name, description: tool.description, properties, required }
  })
  assert.deepEqual(seen, [
    {
      name: 'terminal_close',
      description: 'Close a terminal and end all that runs in it.',
      properties: id,
      required: ['sessionId'],
    },
    { name: 'terminal_list', description: 'List open terminals.', properties: {}, required: undefined },
    {
      name: 'terminal_open',
      description:
        'Open a shell on a terminal that stays open, for programs that ask, REPLs and servers to watch. What it may do stays as it is now.',
      properties: {
        type: { type: 'string', description: '"shell"' },
        name: { type: 'string' },
        cwd: { type: 'string', description: 'default: the working folder' },
      },
      required: ['type'],
    },
    {
      name: 'terminal_read',
      description: 'Get the last lines of a terminal, without typing.',
      properties: {
        ...id,
        offset: { type: 'integer', description: 'lines left out at the end; default 0' },
        count: { type: 'integer', description: 'default 500' },
      },
      required: ['sessionId'],
    },
    {
      name: 'terminal_send',
      description:
        'Type into a terminal and get what it prints until a program waits for input (stdin_read), it was silent for a while (inferred_idle, which is no end), or time is up.',
      properties: {
        ...id,
        text: { type: 'string' },
        keys: {
          type: 'array',
          items: { type: 'string' },
          description: 'pressed behind the text: Enter, Tab, Escape, Up, C-c …',
        },
        submit: { type: 'boolean', description: 'press Enter at the end; default true, with keys false' },
        rows: { type: 'integer', description: 'with columns: resizes first' },
        columns: { type: 'integer' },
        run_in_background: { type: 'boolean', description: 'do not wait; task_output shows what comes' },
      },
      required: ['sessionId', 'text'],
    },
    {
      name: 'terminal_signal',
      description: 'Send a signal to the program that has the terminal.',
      properties: {
        ...id,
        signal: { type: 'string', enum: ['SIGINT', 'SIGTERM', 'SIGKILL', 'SIGTSTP', 'SIGHUP'] },
      },
      required: ['sessionId', 'signal'],
    },
  ])
})

test('what is typed is judged as a command of an open shell, with what is only pressed or not entered', async () => {
  const { ctx } = await setup()
  const effectsOf = async (name: string, args: object) => (await ctx.tools.get(name)?.effects?.(args)) ?? []
  const typed = async (args: object) => await effectsOf('terminal_send', { sessionId: 'pty-1', ...args })
  assert.deepEqual(await typed({ text: 'ls' }), [{ kind: 'command', command: 'ls', isTyped: true }])
  assert.deepEqual(await typed({ text: 'find . ', submit: false }), [
    { kind: 'command', command: 'find .  <not entered>', isTyped: true },
  ])
  assert.deepEqual(await typed({ text: '', keys: ['Up', '<Enter>'] }), [
    { kind: 'command', command: ' <Up><Enter>', isTyped: true },
  ])
  assert.deepEqual(await effectsOf('terminal_open', { type: 'shell', cwd: 'sub' }), [
    { kind: 'command', command: 'bash', workdir: 'sub' },
  ])
  assert.deepEqual(await effectsOf('terminal_read', { sessionId: 'pty-1' }), [])
})

test('what a model reads of terminals is this', () => {
  const status = { state: 'running' } as const
  const exited = { state: 'exited', exitCode: 3, signal: null } as const
  const session = { sessionId: 'pty-1', name: 'x', type: 'shell', pid: 7, status, notices: ['no bash'] }
  const sent = { isStarted: true, status }
  assert.equal(
    openedText({ ...session, mode: 'read-only' }),
    'pty-1 x: shell, running as process 7, read-only\n[no bash]',
  )
  assert.equal(listText([]), 'no terminals')
  assert.equal(
    listText([session, { ...session, sessionId: 'pty-2', status: exited }]),
    'pty-1 x: shell, running as process 7, not confined\npty-2 x: shell, exited, not confined',
  )
  assert.equal(
    sentText('a\n', { ...sent, wait: 'stdin_read', exitCode: 3 }),
    'a\n[exit code: 3]\n[wait: stdin_read]\n[session: running]',
  )
  assert.equal(
    sentText('', { ...sent, wait: 'inferred_idle' }),
    '(no output)\n[wait: inferred_idle; it may still be working]\n[session: running]',
  )
  assert.equal(
    sentText('a', { ...sent, wait: 'timeout', exitCode: 0 }),
    'a\n[wait: timeout; it goes on]\n[session: running]',
  )
  assert.equal(
    sentText('a', { ...sent, wait: 'session_exit', status: { ...exited, exitCode: null, signal: 'SIGHUP' } }),
    'a\n[wait: session_exit]\n[session: exited signal=SIGHUP]',
  )
  assert.equal(closedText('pty-1', status), 'pty-1 is closed')
  assert.equal(closedText('pty-1', exited), 'pty-1 had ended; it is closed\n[session: exited code=3]')
})

test('a page of lines is bounded by its last ones, and says which they are', () => {
  const status = { state: 'running' } as const
  const page = { lines: ['first', 'last'], first: 8, total: 12, oldest: 3 }
  assert.equal(
    pageText(page, status, 100),
    'first\nlast\n[lines: 8-9 of 12; before 3 nothing is kept]\n[session: running]',
  )
  assert.equal(
    pageText({ ...page, lines: ['x'.repeat(80), 'last'], oldest: 1 }, status, 70),
    '[output truncated: 77 bytes before this; ask for fewer lines]\nxxx\nlast\n[lines: 8-9 of 12]\n[session: running]',
  )
  assert.equal(
    pageText({ ...page, lines: [], oldest: 1 }, status, 64),
    '[lines: none of 12]\n[session: running]',
  )
})

test('a terminal that is not there and a call of nobody are told', async () => {
  const { ctx } = await setup()
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd: '/' } })
  const call = async (name: string, args: object, by = true) => {
    const { signal } = new AbortController()
    const input = { callId: 'c' as never, name, arguments: args, signal, ...(by && { agent }) }
    const { content } = await ctx.tools.execute(input)
    return content.map(block => (block.type === 'text' ? block.text : '')).join('')
  }
  assert.equal(
    await call('terminal_read', { sessionId: 'pty-1' }),
    'Error: no terminal "pty-1"; none is open',
  )
  assert.equal(
    await call('terminal_list', {}, false),
    'Error: terminal_list was called by no agent, and a terminal belongs to one',
  )
  assert.equal(
    await call('terminal_send', { sessionId: 'pty-1', text: 'a', keys: ['x'] }),
    'Error: invalid arguments: keys: there is no key "x"; use Enter, Tab, Escape, Up, C-c and the like',
  )
})

test('tools and service go with the plugin', async () => {
  const { ctx, plugin } = await setup()
  assert.ok(ctx.get('pty'))
  await plugin.dispose()
  assert.equal(ctx.get('pty'), undefined)
  assert.deepEqual(
    names.filter(name => ctx.tools.get(name) !== undefined),
    [],
  )
})
