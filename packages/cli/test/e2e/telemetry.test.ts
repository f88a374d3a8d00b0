import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'

test('spans leave for the collector that dsh.yml names, hold nothing that was said, and can be switched off', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('a secret answer') })
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () => {
      bodies.push(body)
      response.end()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  mkdirSync(home, { recursive: true })
  const rows = `- name: telemetry\n  config:\n    endpoint: http://127.0.0.1:${port}\n`
  writeFileSync(join(home, 'dsh.yml'), rows)

  const off = await dsh(['run', 'a secret question'], { env: { DSH_TELEMETRY_DISABLED: '1' } })
  assert.deepEqual([off.code, bodies], [0, []])
  const on = await dsh(['run', 'a secret question'])
  assert.deepEqual([on.code, on.stdout], [0, 'a secret answer\n'])
  const [body = ''] = bodies
  assert.match(body, /"name":"invoke_agent dsh"/)
  assert.doesNotMatch(bodies.join(), /secret/)
  server.closeAllConnections()
})

test('what a plugin fails at while the program ends is told too', async t => {
  const { dsh, provider, home } = bench(t)
  await provider({ fallback: reply.text('ok') })
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'dsh.yml'), '- name: telemetry\n  config:\n    endpoint: http://127.0.0.1:1\n')
  const { code, stdout, stderr } = await dsh(['run', 'hi'])
  assert.deepEqual([code, stdout], [0, 'ok\n'])
  assert.match(stderr, /^note: plugin "telemetry" failed \(telemetry\): .+$/m)
})
