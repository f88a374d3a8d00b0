import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', tmpdir()]).status === 0

const script = `
  import fs from 'node:fs'
  import { CallId, SessionId } from '@dsh/protocol'
  import { fs as files } from '@dsh/harness/plugins/fs'
  import { createHarness } from '@dsh/harness/testing'
  const { ctx } = await createHarness()
  await ctx.plugin(files)
  const cwd = process.argv[1]
  const { agent } = await ctx.agents.create({ sessionId: SessionId('s'), meta: { cwd } })
  const call = async (name, args) => {
    const input = { callId: CallId('c'), name, arguments: args, signal: new AbortController().signal, agent }
    const result = await ctx.tools.execute(input)
    return result.content[0].text
  }
  const texts = []
  texts.push(await call('write', { file_path: 'a', content: 'one' }))
  texts.push(await call('write', { file_path: 'b', content: 'x'.repeat(400_000) }))
  texts.push(await call('edit', { file_path: 'a', old_string: 'one', new_string: 'y'.repeat(400_000) }))
  texts.push(fs.readdirSync(cwd).join(), fs.readFileSync(cwd + '/a', 'utf8'))
  fs.writeFileSync(cwd + '/filler', 'x'.repeat(200_000))
  texts.push(await call('write', { file_path: 'c', content: 'x'.repeat(100_000) }))
  fs.rmSync(cwd + '/filler')
  texts.push(await call('write', { file_path: 'c', content: 'x'.repeat(100_000) }))
  texts.push(fs.readdirSync(cwd).join())
  console.log(JSON.stringify(texts))
`

test(
  'a full disk fails the call, leaves every file as it was, and is forgotten once there is room',
  { skip: !canMount },
  () => {
    const dir = mkdtempSync(join(tmpdir(), 'dsh-full-'))
    const shell =
      'mount -t tmpfs -o size=256k none "$1" && exec "$2" --conditions=dsh-source --input-type=module -e "$3" "$1"'
    const args = ['-m', 'sh', '-c', shell, 'sh', dir, process.execPath, script]
    try {
      const printed = execFileSync('unshare', args, { cwd: import.meta.dirname, encoding: 'utf8' })
      const full = (doing: string, name: string): string =>
        `Error: cannot ${doing} ${join(dir, name)}: no space left on device (ENOSPC)`
      assert.deepEqual(JSON.parse(printed), [
        `Created file ${join(dir, 'a')}`,
        full('write', 'b'),
        full('edit', 'a'),
        'a',
        'one',
        full('write', 'c'),
        `Created file ${join(dir, 'c')}`,
        'a,c',
      ])
    } finally {
      rmSync(dir, { recursive: true })
    }
  },
)
