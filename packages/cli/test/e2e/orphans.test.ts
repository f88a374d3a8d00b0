import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { reply } from '@dsh/harness/testing'
import { bench } from './dsh.ts'

const skip = existsSync('/proc/self/stat') ? false : 'the system shows no /proc'
let naps = 600

/** Three levels deep, out of the session and deaf to signals; each of its processes has `nap` in its command line. */
const treeOf = (nap: string): string =>
  `trap '' TERM HUP INT; echo begun; setsid sh -c "trap '' TERM HUP INT; sh -c '${nap}; ${nap}' & ${nap}; ${nap}" & ${nap}; ${nap}`

for (const permission of ['workspace-write', 'full-access'] as const) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const) {
    test(`nothing that a command started outlives ${signal} in ${permission} mode`, { skip }, async t => {
      const { start, dsh, provider, home } = bench(t)
      const { push } = await provider()
      const nap = `sleep ${++naps}.${process.pid}`
      push(reply.toolCall('bash', { command: treeOf(nap), description: 'Stay' }), reply.text('ok'))
      const run = start(['run', '--yes', '--permission', permission, 'go'])
      await until(() => running(nap).length >= 3)
      run.child.kill(signal)
      await run.ended
      if (signal === 'SIGKILL' && permission === 'full-access') {
        assert.ok(running(nap).length >= 3, 'nobody could end them')
        assert.equal((await dsh(['run', '-c', '--yes', 'more'])).code, 0)
      }
      await until(() => running(nap).length === 0)
      if (signal !== 'SIGKILL') assert.deepEqual(readdirSync(join(home, 'processes')), [])
    })
  }
}

test('what a command left running, and what runs in the background, ends with the run', { skip }, async t => {
  const { start, provider } = bench(t)
  const { push } = await provider()
  const nap = `sleep ${++naps}.${process.pid}`
  push(
    reply.toolCall('bash', { command: `setsid ${nap} >/dev/null 2>&1 & echo up`, description: 'Leave it' }),
    reply.toolCall('bash', { command: treeOf(nap), description: 'Stay', run_in_background: true }),
    reply.text('done'),
  )
  const { code, stdout } = await start(['run', '--permission', 'full-access', 'go']).ended
  assert.deepEqual([code, stdout], [0, 'done\n'])
  assert.deepEqual(running(nap), [])
})

/** The numbers of the processes whose command line has `part`. */
function running(part: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(part)
      } catch {
        return false
      }
    })
}

/** Looks every 20 ms, for ten seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let looks = 0; looks < 500; looks++) {
    if (isTrue()) return
    await sleep(20)
  }
  throw new Error('it did not come true')
}
