import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench, canTerminal, sessionIn } from './dsh.ts'

const skip = !canTerminal
const touch = reply.toolCall('bash', { command: 'touch made \\\n  && echo ok', description: 'Make a file' })
const asked = ['permission', 'ask', 'touch']
const wanting = reply.toolCall('bash', {
  command: 'touch made',
  description: 'Make a file',
  sandbox_permissions: 'network',
  justification: 'to see',
})

test('at a terminal a command runs only after a yes, and Enter alone is none', { skip }, async t => {
  const { terminal, provider, work, dsh } = bench(t)
  await dsh(asked)
  await provider({ script: [touch, reply.text('done')] })
  const run = terminal(['run', 'go'])
  await run.said(
    /\? allow bash\r\n {2}│ touch made \\\r\n {2}│ {3}&& echo ok\r\n {2}rule r1 asks for `touch …`: .*y, n or e: /s,
  )
  assert.ok(!existsSync(join(work, 'made')))
  run.child.stdin.write('\n')
  await run.said(/y, n or e: .*\n.* {2}y, n or e: /s)
  assert.ok(!existsSync(join(work, 'made')))
  run.child.stdin.write('y\n')
  const { code, stdout } = await run.ended
  assert.equal(code, 0)
  assert.match(stdout, /●\S* bash touch made/)
  assert.match(stdout, /\r\ndone\r\n/)
  assert.ok(existsSync(join(work, 'made')))
})

test('a yes that was typed before the question is none', { skip }, async t => {
  const { terminal, provider, work, dsh } = bench(t)
  await dsh(asked)
  const gate = Promise.withResolvers<void>()
  const { requests } = await provider({ script: [touch.gate(gate.promise), reply.text('I see.')] })
  const run = terminal(['run', 'go'])
  await run.said(/workspace-write: /)
  run.child.stdin.write('yes\n')
  await run.said(/yes\r\n/)
  gate.resolve()
  await run.said(/y, n or e: /)
  run.child.stdin.write('n not so fast\n')
  assert.equal((await run.ended).code, 0)
  assert.ok(JSON.stringify(requests[1]?.body.messages?.at(-1)).includes('not so fast'))
  assert.ok(!existsSync(join(work, 'made')))
})

test('a no with a reason reaches the model', { skip }, async t => {
  const { terminal, provider, work, dsh } = bench(t)
  await dsh(asked)
  const { requests } = await provider({ script: [touch, reply.text('I see.')] })
  const run = terminal(['run', 'go'])
  await run.said(/y, n or e: /)
  run.child.stdin.write('n use a temporary folder\n')
  const { code } = await run.ended
  assert.equal(code, 0)
  assert.ok(JSON.stringify(requests[1]?.body.messages?.at(-1)).includes('use a temporary folder'))
  assert.ok(!existsSync(join(work, 'made')))
})

test(
  'an answer for the session counts for the rest of it, a rule for the next one too, and each can be taken back',
  { skip },
  async t => {
    const { terminal, provider, dsh } = bench(t)
    const { push } = await provider({
      script: [wanting, wanting, reply.text('done'), wanting, reply.text('done')],
    })
    const offer =
      /s {3}for this session: touch …, with the network\r\n {2}r {3}from now on in this folder: .*y, s, r, n or e: /s
    const first = terminal(['run', 'go'])
    await first.said(offer)
    first.child.stdin.write('s\n')
    const { code, stdout } = await first.ended
    assert.equal(code, 0)
    assert.equal(stdout.split('? allow bash').length, 2)
    const session = sessionIn(stdout.replaceAll('\r', ''))
    assert.equal(
      (await dsh(['permission', 'ls', '--session', session])).stdout,
      'allow touch …, with the network\n',
    )
    assert.equal((await dsh(['permission', 'rm', '--session', session])).code, 0)
    const second = terminal(['run', '-r', session, 'again'])
    await second.said(offer)
    second.child.stdin.write('r\n')
    assert.equal((await second.ended).code, 0)
    push(wanting, reply.text('done'))
    assert.equal((await dsh(['run', 'in a new session'])).code, 0)
    assert.match(
      (await dsh(['permission', 'rm', 'r1'])).stderr,
      /^removed r1 {3}allow touch …, with the network, in /,
    )
    push(wanting, reply.text('no'))
    assert.equal((await dsh(['run', 'in a new session'])).code, 4)
  },
)

test(
  'a command to run instead reaches the model, and the one it asked for does not run',
  { skip },
  async t => {
    const { terminal, provider, work } = bench(t)
    const { requests } = await provider({ script: [wanting, reply.text('I see.')] })
    const run = terminal(['run', 'go'])
    await run.said(/y, s, r, n or e: /)
    run.child.stdin.write('e touch other\n')
    assert.equal((await run.ended).code, 0)
    assert.ok(JSON.stringify(requests[1]?.body.messages?.at(-1)).includes('call it again as `touch other`'))
    assert.ok(!existsSync(join(work, 'made')))
  },
)

test('Ctrl-C at a question cancels the turn', { skip }, async t => {
  const { terminal, provider, dsh } = bench(t)
  await dsh(asked)
  await provider({ script: [touch] })
  const run = terminal(['run', 'go'])
  await run.said(/y, n or e: /)
  run.child.stdin.write('\u0003')
  const { code, stdout } = await run.ended
  assert.equal(code, 130)
  assert.match(stdout, /\r\ncancelled\r\nsession /)
})

test('the answer streams to a terminal, and nothing in it acts on the terminal', { skip }, async t => {
  const { terminal, provider } = bench(t)
  const gate = Promise.withResolvers<void>()
  await provider({
    script: [reply.text('first words \u001b[2J\u001b]0;title\u0007 and the rest').gate(gate.promise, 3)],
  })
  const run = terminal(['run', 'go'])
  await run.said(/first/)
  gate.resolve()
  const { code, stdout } = await run.ended
  assert.equal(code, 0)
  assert.equal(stdout.split('first words').length, 2)
  assert.match(stdout, /first words ␛\[2J␛\]0;title␇ and the rest\r\n/)
})

test('without a prompt at a terminal nobody waits', { skip }, async t => {
  const { terminal } = bench(t)
  for (const args of [['run'], ['run', '-']]) {
    const { code, stdout } = await terminal(args).ended
    assert.equal(code, 2)
    assert.match(stdout, /^error MISSING_PROMPT: /)
  }
})
