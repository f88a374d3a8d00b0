import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { skipWithoutBwrap } from './bwrap.ts'

const patienceMs = 120_000
/** What two hundred hostile runs may leave in memory. */
const mostMegabytes = 8
/** The same with what the allocator keeps of pages: it alone comes to 60 to 160. */
const mostResidentMegabytes = 256

interface Census {
  readonly processes: number
  readonly files: number
  readonly megabytes: number
  readonly residentMegabytes: number
}

async function censusOf(kind: string) {
  const child = join(import.meta.dirname, 'census-child.ts')
  const args = ['--conditions=dsh-source', '--expose-gc', child, kind, '14']
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    timeout: patienceMs,
    killSignal: 'SIGKILL',
  })
  return JSON.parse(stdout) as { runs: number; left: number; seconds: number; before: Census; after: Census }
}

const kinds = {
  bare: existsSync('/proc/self/stat') ? false : 'the system shows no /proc',
  sandboxed: skipWithoutBwrap(),
}

for (const [kind, skip] of Object.entries(kinds))
  test(
    `two hundred hostile commands leave no process, no open file and no memory behind: ${kind}`,
    { skip },
    async t => {
      const { runs, left, seconds, before, after } = await censusOf(kind)
      t.diagnostic(`${runs} runs in ${seconds.toFixed(1)} s, ${JSON.stringify({ before, after })}`)
      assert.ok(runs >= 200)
      assert.equal(left > 0, kind === 'bare', `${left} processes were there while their agent was`)
      assert.deepEqual([before.processes, after.processes], [0, 0])
      assert.equal(after.files, before.files)
      assert.ok(
        after.megabytes - before.megabytes < mostMegabytes,
        `${after.megabytes - before.megabytes} MB more`,
      )
      const resident = after.residentMegabytes - before.residentMegabytes
      assert.ok(resident < mostResidentMegabytes, `${resident} MB more resident`)
    },
  )
