import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHarness } from '../../testing/index.ts'
import { bash } from '../bash/index.ts'
import { pty } from '../pty/index.ts'
import { subprocess } from '../subprocess/index.ts'
import { persistentBash } from './index.ts'
import { exitedText, sectionText, timedOutText, waitingText } from './texts.ts'

async function setup() {
  const { ctx } = await createHarness()
  await ctx.plugin(subprocess, { env: {} })
  await ctx.plugin(bash, { cwd: '/', tool: false })
  await ctx.plugin(pty)
  const plugin = ctx.plugin(persistentBash)
  await plugin
  return { ctx, plugin }
}

test('what a model is told of a bash that stays is this', () => {
  assert.equal(
    sectionText,
    'All bash calls go to one shell on a terminal. Commands must not ask for input. End servers with &. After a time-out the shell is a new one, which the result says.',
  )
  assert.equal(
    timedOutText(700),
    '[timed out after 700 ms; the shell was ended, the next call gets a new one: its folder, variables and jobs are gone]',
  )
  assert.equal(
    exitedText(null, 'SIGHUP'),
    '[shell exited: signal SIGHUP; the next call gets a new one: its folder, variables and jobs are gone]',
  )
  assert.equal(
    waitingText('pty-1'),
    '[waiting for input; terminal_send types into pty-1, the next bash call interrupts it]',
  )
})

test('a command is judged as one of an open shell', async () => {
  const { ctx } = await setup()
  assert.deepEqual(await ctx.tools.get('bash')?.effects?.({ command: 'ls' }), [
    { kind: 'command', command: 'ls', isTyped: true },
  ])
})

test('the tool goes with the plugin, and the one of bash is not touched', async () => {
  const { ctx, plugin } = await setup()
  await plugin.dispose()
  assert.equal(ctx.tools.get('bash'), undefined)
  const { ctx: other } = await createHarness()
  await other.plugin(subprocess, { env: {} })
  await other.plugin(bash, { cwd: '/' })
  await other.plugin(pty)
  const theirs = other.tools.get('bash')
  await assert.rejects(async () => await other.plugin(persistentBash), { code: 'TOOL_TAKEN' })
  assert.equal(other.tools.get('bash')?.description, theirs?.description)
})
