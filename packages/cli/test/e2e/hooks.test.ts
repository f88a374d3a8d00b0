import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
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

test(
  'a program that is killed while a hook runs goes on as resumed, and what the hook began is ended',
  { skip: existsSync('/proc/self/stat') ? false : 'the system shows no /proc', timeout: 90_000 },
  async t => {
    const place = bench(t)
    const { dsh, start, work } = place
    const nap = `sleep 900.${process.pid}`
    const hook = (line: string) => [{ hooks: [{ type: 'command', command: line, timeout: 900 }] }]
    mkdirSync(join(work, '.claude'))
    writeFileSync(
      join(work, '.claude/settings.json'),
      JSON.stringify({
        hooks: {
          SessionStart: hook('cat > "$(ls | grep -c began)"'),
          PreToolUse: hook(`test -e began.twice || { touch began; setsid ${nap} & ${nap}; }`),
        },
      }),
    )
    await dsh(['trust', '--yes'])
    const look = reply.toolCall('bash', command('touch made'))
    await place.provider({ script: [look, look, reply.text('done')] })
    const run = start(['run', '--permission', 'full-access', 'go'])
    await until(() => existsSync(join(work, 'began')) && running(nap) >= 2)
    run.child.kill('SIGKILL')
    await run.ended
    assert.ok(!existsSync(join(work, 'made')))
    writeFileSync(join(work, 'began.twice'), '')
    rmSync(join(work, 'began'))
    const more = await dsh(['run', '-c', '--permission', 'full-access', 'more'])
    assert.equal(more.code, 0, more.stderr)
    assert.ok(existsSync(join(work, 'made')))
    const sources = ['0', '1'].map(
      name => (JSON.parse(readFileSync(join(work, name), 'utf8')) as { source: string }).source,
    )
    assert.deepEqual(sources, ['startup', 'resume'])
    await until(() => running(nap) === 0)
    const { code, stdout } = await dsh(['session', 'verify', '--all'])
    assert.equal(code, 0, stdout)
  },
)

/** How many processes have `part` in their command line, but for shells that hold it as text. */
function running(part: string): number {
  return readdirSync('/proc').filter(name => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() === part
    } catch {
      return false
    }
  }).length
}

/** Looks every 20 ms, within the time of its test. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(20)
}
