import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'

const isMissing = !existsSync('/usr/bin/bwrap') && process.env['CI'] !== 'true'
const skip = process.platform !== 'linux' ? 'bubblewrap is of Linux' : isMissing ? 'no bubblewrap' : false
const options = { skip, timeout: 120_000 }
const bash = (command: string) => reply.toolCall('bash', { command, description: 'Do it' })

test('names that a killed run took are free again after the next, wherever that works', options, async t => {
  const { start, dsh, work, root, home, provider } = bench(t)
  const other = join(root, 'other')
  mkdirSync(other)
  let kill = (): void => {}
  const die = () => {
    kill()
    return reply.text('to nobody')
  }
  await provider({ script: [bash('true'), die, bash('true')], fallback: reply.text('done') })
  const { child, ended } = start(['run', 'go'])
  kill = () => void child.kill('SIGKILL')
  assert.equal((await ended).code, null)
  assert.deepEqual(readdirSync(work), ['.claude', '.codex', '.dsh', '.envrc', '.git', '.idea', '.vscode'])
  assert.equal((await dsh(['run', 'go on'], { cwd: other })).code, 0)
  assert.deepEqual([readdirSync(work), readdirSync(other)], [[], []])
  assert.deepEqual(readdirSync(join(home, 'tmp')), [])
})

test('before its first request a run starts no process and loads nothing that it may never need', async t => {
  const { dsh, root, provider } = bench(t)
  const record = join(root, 'record')
  let before = ''
  const answer = () => {
    before ||= readFileSync(record, 'utf8')
    return reply.toolCall('bash', { command: 'true', description: 'Do it' })
  }
  await provider({ script: [answer, reply.text('done')], fallback: reply.text('a title') })
  const preload = `--import=${join(import.meta.dirname, 'watch-start.mjs')}`
  const { code } = await dsh(['run', '--yes', 'go'], { env: { START_RECORD: record, NODE_OPTIONS: preload } })
  assert.equal(code, 0)
  const heavy =
    /^process .*|.*node_modules\/(unbash|linkedom|turndown|@mozilla|@lydell|@vscode).*|.*\/plugins\/(sandbox\/(confiner|reach|placeholders|world)|sandbox-shells\/local|shell-command\/parse|destructive\/care)\.[jt]s$/gm
  assert.deepEqual(before.match(heavy), null)
  const all = readFileSync(record, 'utf8')
  assert.ok(all.startsWith(before) && /^module .*\/agent\//m.test(before), 'the record is of what was loaded')
  assert.match(all, /^process /m)
  assert.match(all, /node_modules\/unbash/, 'and the first command needs it')
})
