import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'
import type { Bench } from './dsh.ts'

const command = (line: string) => ({ command: line, description: 'test it' })

/** A project that denies commands, and whose other hook cannot be used. */
function project({ work }: Bench): void {
  mkdirSync(join(work, '.claude'))
  const deny = { type: 'command', command: 'touch ran; echo "not here" >&2; exit 2', timeout: 20 }
  const hooks = {
    PreToolUse: [{ matcher: 'Bash', hooks: [deny] }],
    Stop: [{ hooks: [{ type: 'command', command: 'true', timeout: 0 }] }],
    UserPromptSubmit: [
      { hooks: [{ type: 'command', command: `echo '{"systemMessage":"mind \\\\u001b[31mthe gap"}'` }] },
    ],
  }
  writeFileSync(join(work, '.claude/settings.json'), JSON.stringify({ hooks }))
}

test('hooks of a project run once it is trusted, and the person is told what they say', async t => {
  const place = bench(t)
  project(place)
  const { dsh, work } = place
  const script = [reply.toolCall('bash', command('touch made')), reply.text('done')]
  await place.provider({ script: [...script, ...script] })
  const before = await dsh(['run', '--permission', 'full-access', 'go'])
  assert.equal(before.code, 0, before.stderr)
  assert.match(before.stderr, /^note: not loaded, as this folder is not trusted: \.claude\/settings\.json; /m)
  assert.ok(existsSync(join(work, 'made')) && !existsSync(join(work, 'ran')))

  const hooksOf = async (): Promise<readonly unknown[]> => {
    const { stdout } = await dsh(['doctor', '--json'])
    const lines = stdout.trim().split('\n')
    const found = lines.map(line => JSON.parse(line) as Record<string, unknown>)
    return found
      .filter(({ check }) => check === 'hooks')
      .map(({ state, code, detail }) => [state, code, detail])
  }
  const left =
    '.claude/settings.json Stop[0].hooks[0] is left out: its timeout is 0, not a number of seconds above 0 and at most 86400'
  assert.deepEqual(await hooksOf(), [
    ['note', 'HOOK_NOT_LOADED', left],
    [
      'note',
      'HOOKS_NOT_TRUSTED',
      '2 hooks in .claude/settings.json do not run: the folder is not trusted as it is',
    ],
  ])
  await dsh(['trust', '--yes'])
  assert.deepEqual(await hooksOf(), [
    ['note', 'HOOK_NOT_LOADED', left],
    ['ok', 'OK', '2 hooks in .claude/settings.json'],
  ])
  const after = await dsh(['run', '--permission', 'full-access', 'go'])
  assert.equal(after.code, 0, after.stderr)
  assert.ok(existsSync(join(work, 'ran')))
  assert.match(after.stderr, /^note: mind .*the gap$/m)
  assert.match(
    after.stderr,
    /^note: \.claude\/settings\.json Stop\[0\]\.hooks\[0\] is left out: its timeout is 0, not a number of seconds above 0 and at most 86400$/m,
  )
  assert.ok(!after.stderr.includes('\u001b'))
})
