import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'

const maxTools = 8
const maxBytes = 8192

test('the first request of a run has eight tools, and at most 8 KiB before what a person said', async t => {
  const { dsh, provider } = bench(t)
  const { requests } = await provider({ script: [reply.text('done')] })
  const { code } = await dsh(['run', 'go'])
  assert.equal(code, 0)
  const { tools = [], messages = [] } = requests[0]?.body ?? {}
  const said = messages.flatMap(({ role, content }) => (role === 'system' ? [content] : []))
  const [own, toolBytes] = [said, tools].map(part => Buffer.byteLength(JSON.stringify(part)))
  const total = (own ?? 0) + (toolBytes ?? 0)
  t.diagnostic(`system prompt ${own} bytes, ${tools.length} tools ${toolBytes} bytes, together ${total}`)
  assert.deepEqual(
    tools.map(tool => tool.function.name),
    ['bash', 'edit', 'glob', 'grep', 'read', 'todo_write', 'tool_search', 'write'],
  )
  // `node --test-update-snapshots` writes it anew; what it says is what every run pays for.
  const text = [...said.map(String), ...tools.map(tool => JSON.stringify(tool.function))].join('\n\n')
  t.assert.fileSnapshot(text, join(import.meta.dirname, 'first-request.txt'), { serializers: [String] })
  assert.ok(tools.length <= maxTools)
  assert.ok(total <= maxBytes, `${total} bytes`)
})
