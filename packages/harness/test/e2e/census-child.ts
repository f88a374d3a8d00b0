import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CallId, SessionId } from '@dsh/protocol'
import { bash } from '../../src/plugins/bash/index.ts'
import { fs } from '../../src/plugins/fs/index.ts'
import { sandbox } from '../../src/plugins/sandbox/index.ts'
import { subprocess } from '../../src/plugins/subprocess/index.ts'
import { tasks } from '../../src/plugins/tasks/index.ts'
import { createHarness } from '../../src/testing/index.ts'

/** `hostile` commands run through the tool, counted by what is there before and after. */
const [, , kind = '', rounds = '1'] = process.argv
const nap = `sleep 8${process.pid}`
const lateMs = 150

/** Each with whether it runs into its time-out. */
const hostile: readonly (readonly [command: string, isLate?: true])[] = [
  [`setsid ${nap} & echo $!`],
  [`nohup ${nap} >/dev/null 2>&1 & echo $!`],
  [`( ( ${nap} & ) & ); echo up`],
  [`trap '' TERM HUP INT; ${nap}; ${nap}`, true],
  [`${nap} | cat & echo hi`],
  [`for i in $(seq 40); do ${nap} & done; wait`, true],
  ['yes', true],
  [`(while :; do echo x; ${nap}; done) & echo done`],
  [`exec >&- 2>&- <&-; ${nap}`, true],
  ["head -c 8M /dev/zero | tr '\\0' x"],
  [`mkdir -p gone/$$; cd gone/$$; rmdir ../$$; setsid ${nap} & pwd`],
  [`setsid sh -c "trap '' TERM; setsid ${nap} & ${nap}; ${nap}" & kill -9 $$`],
  [`sh -c 'sleep 0 & exec ${nap}'`, true],
  [`coproc ${nap}; disown -a; exit 3`],
  ['cat /dev/zero >&2', true],
  ...(kind === 'sandboxed' ? [[`env -i setsid ${nap} >/dev/null 2>&1 & exit`] as const] : []),
]

const dir = realpathSync(mkdtempSync('/var/tmp/dsh-census-'))
mkdirSync(join(dir, 'gone'))
const { ctx } = await createHarness()
await ctx.plugin(fs)
if (kind === 'sandboxed') await ctx.plugin(sandbox)
await ctx.plugin(subprocess)
await ctx.plugin(tasks)
await ctx.plugin(bash, { graceMs: 100, drainMs: 100 })

async function work(id: string, times: number) {
  const handle = await ctx.agents.create({ sessionId: SessionId(id), meta: { cwd: dir } })
  const { agent } = handle
  const sha256 = '0'.repeat(64)
  agent.session.artifacts.attach({
    put: ({ length: bytes }) => Promise.resolve({ sha256, bytes }),
    get: () => Promise.resolve(undefined),
  })
  let calls = 0
  const run = async ([command, isLate]: (typeof hostile)[number]): Promise<void> => {
    const args = { command, description: 'hostile', ...(isLate && { timeoutMs: lateMs }) }
    const { signal } = new AbortController()
    const input = { callId: CallId(`${id}.${++calls}`), name: 'bash', arguments: args, signal, agent }
    const { isError, meta, content } = await ctx.tools.execute(input)
    const { timedOut } = (meta ?? {}) as { timedOut?: boolean }
    if (isError || timedOut !== (isLate ?? false))
      throw new Error(`${command}: ${JSON.stringify({ meta, content })}`)
  }
  const queue = Array.from({ length: times }, () => hostile).flat()
  const lane = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) await run(next)
  }
  await Promise.all(Array.from({ length: 4 }, lane))
  const left = census().processes
  await handle.dispose()
  return { runs: calls, left }
}

/** What is there of this process and of all that came of it. */
function census() {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  const entries = readdirSync('/proc').filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
  const isOf = (pid: string): boolean => {
    const read = (file: string): string => readFileSync(`/proc/${pid}/${file}`, 'latin1')
    try {
      if (/^State:\s+[ZX]/m.test(read('status'))) return false
      const isChild = new RegExp(`^PPid:\\t${process.pid}$`, 'm').test(read('status'))
      return isChild || read('cmdline').replaceAll('\0', ' ').includes(nap) || read('cwd').startsWith(dir)
    } catch {
      return false
    }
  }
  return {
    processes: entries.filter(isOf).length,
    files: readdirSync('/proc/self/fd').length,
    megabytes: (heapUsed + external) / 2 ** 20,
    residentMegabytes: rss / 2 ** 20,
  }
}

await work('warm', 1)
const before = census()
const started = performance.now()
const { runs, left } = await work('s', Number(rounds))
const seconds = (performance.now() - started) / 1000
// What was closed leaves its memory to the next collection, and its numbers to the loop; what was killed dies in its time.
const settledAt = performance.now() + 5000
let after = census()
do {
  await new Promise(resolve => setTimeout(resolve, 200))
  after = census()
} while (after.processes > 0 && performance.now() < settledAt)
await ctx.dispose()
rmSync(dir, { recursive: true, force: true })
console.log(JSON.stringify({ runs, left, seconds, before, after }))
