import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'

const hello = `
import { defineTool } from '@dsh/harness/tools'

const hello = defineTool({
  name: 'hello',
  description: 'Greet somebody.',
  parameters: { name: { type: 'string', required: true } },
  execute: ({ name }) => \`Hello, \${name}!\`,
})

export const plugin = { name: 'hello', inject: ['tools'], apply: ctx => void ctx.tools.register(hello) }
`

function composed(t: TestContext, yaml: string) {
  const place = bench(t)
  mkdirSync(place.home, { recursive: true })
  writeFileSync(join(place.home, 'hello.ts'), hello)
  writeFileSync(join(place.home, 'dsh.yml'), yaml)
  return place
}

test('a plugin named in dsh.yml gives its tool to the model', async t => {
  const { dsh, provider } = composed(t, '- name: ./hello.ts\n')
  const mock = await provider({ script: [reply.toolCall('hello', { name: 'Rex' }), reply.text('greeted')] })
  const { code, stdout, stderr } = await dsh(['run', 'greet Rex'])
  assert.deepEqual([code, stdout], [0, 'greeted\n'], stderr)
  assert.match(mock.requests[1]?.text ?? '', /Hello, Rex!/)
})

test('a row of dsh.yml configures a built-in plugin, and one can be switched off', async t => {
  const { dsh, provider } = composed(t, '- id: bash\n  disabled: true\n- id: fs\n  config: {readLimit: 1}\n')
  const mock = await provider({ script: [reply.text('ok')] })
  assert.equal((await dsh(['run', 'hi'])).code, 0)
  const body = mock.requests[0]?.text ?? ''
  assert.doesNotMatch(body, /"name":"bash"/)
  assert.match(body, /"name":"read"/)
})

test('what the program settles is not for a file to change', async t => {
  const { dsh, provider, logs } = composed(t, '- id: store-jsonl\n  config: {root: /nowhere}\n')
  await provider({ script: [reply.text('ok')] })
  assert.equal((await dsh(['run', 'hi'])).code, 0)
  assert.equal(logs().length, 1)
})

test('a broken row is told, and the run goes on without it', async t => {
  const yaml =
    '- name: ./absent.ts\n- {id: broken, name: ./hello.ts, inject: [nothing]}\n- {id: bsh, disabled: true}\n'
  const { dsh, provider } = composed(t, yaml)
  await provider({ script: [reply.text('ok')] })
  const { code, stdout, stderr } = await dsh(['run', 'hi'])
  assert.deepEqual([code, stdout], [0, 'ok\n'])
  assert.match(stderr, /note: plugin "absent" is unloaded: plugin ".\/absent.ts" cannot be loaded/)
  assert.match(stderr, /note: plugin "broken" is pending: waits for "nothing"/)
  assert.match(
    stderr,
    /note: plugin "bsh" is unloaded: no layer brings in a plugin "bsh"; did you mean "bash"\?/,
  )
})

test('a plugin that fails in a timer of its own is told of, and the run goes on', async t => {
  const { dsh, provider, home } = composed(t, '- name: ./timer.ts\n')
  const timer = `
    export const plugin = {
      name: 'timer',
      apply: ctx => {
        ctx.on('agent/status', ({ status }) => {
          if (status !== 'running') return
          setTimeout(() => { throw new Error('late') }, 0)
          Promise.reject(new Error('rejected'))
        })
      },
    }
  `
  writeFileSync(join(home, 'timer.ts'), timer)
  await provider({ script: [reply.text('ok').pace(20)] })
  const { code, stdout, stderr } = await dsh(['run', 'hi'])
  assert.deepEqual([code, stdout], [0, 'ok\n'], stderr)
  assert.match(stderr, /^note: plugin "timer" failed \(uncaught\): late$/m)
  assert.match(stderr, /^note: plugin "timer" failed \(uncaught\): rejected$/m)
})

test('without a store nothing is begun, and the way back is told', async t => {
  for (const [row, why] of [
    ['disabled: true', 'disabled'],
    ['config: {wirteBatchMaxDelayMs: 5}', 'wirteBatchMaxDelayMs'],
  ]) {
    const { dsh, home } = composed(t, `- id: store-jsonl\n  ${row}\n`)
    const { code, stdout, stderr } = await dsh(['run', 'hi'])
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^error NO_STORE: no session would be kept: plugin "store-jsonl" is off \(/m)
    assert.ok(stderr.includes(String(why)) && stderr.includes(join(home, 'dsh.yml')))
  }
})

test('a file that is no YAML is told with line and column, and the run goes on', async t => {
  const { dsh, provider } = composed(t, '- id: [\n')
  await provider({ script: [reply.text('ok')] })
  const { code, stderr } = await dsh(['run', 'hi'])
  assert.equal(code, 0)
  assert.match(stderr, /note: .*dsh\.yml: .* at line \d+, column \d+/)
})

test('plugin why tells what runs and why something does not', async t => {
  const { dsh } = composed(t, '- name: ./hello.ts\n- {id: waits, name: ./hello.ts, inject: [tols]}\n')
  const all = await dsh(['plugin', 'why'])
  assert.match(all.stdout, /^hello +active$/m)
  assert.match(all.stdout, /^waits +pending +waits for "tols"$/m)
  const one = await dsh(['plugin', 'why', 'hello'])
  assert.equal(one.stdout, 'hello  active\n  did       tool hello\n')
  const json = await dsh(['plugin', 'why', 'hello', '--json'])
  assert.equal((JSON.parse(json.stdout) as { id: string }).id, 'hello')
  const typo = await dsh(['plugin', 'why', 'helo'])
  assert.equal(typo.code, 2)
  assert.match(typo.stderr, /no plugin is called "helo"; did you mean "hello"\?/)
})
