import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { allParts } from './parts.ts'
import { byKind, failedRow, toTable } from './report.ts'
import type { Row } from './report.ts'

// `npm run test:crash [words of parts]`: every part in a process of its own, a table, and exit code 1 where anything
// was lost or not as it must be. DSH_CRASH_SEED repeats a run.

const longestPartMs = 280_000
const seed = process.env['DSH_CRASH_SEED'] ?? randomBytes(4).toString('hex')

async function runPart(name: string): Promise<Row> {
  const child = fork(fileURLToPath(import.meta.url), ['--part', name], {
    execArgv: ['--conditions=dsh-source'],
    env: { ...process.env, DSH_CRASH_SEED: seed },
    timeout: longestPartMs,
    killSignal: 'SIGKILL',
  })
  let row: Row | undefined
  child.on('message', message => {
    row = message as Row
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  return row ?? failedRow(name, `the process of this part ended with ${signal ?? code}`)
}

async function runAll(names: readonly string[]): Promise<readonly Row[]> {
  const rows: Row[] = []
  const waiting = [...names.entries()]
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, name] = next
      const row = await runPart(name)
      rows[index] = row
      process.stderr.write(`${row.failures.length === 0 ? 'ok' : 'FAILED'} ${row.scenario}\n`)
    }
  }
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, lane))
  return rows
}

async function main(words: readonly string[]): Promise<void> {
  const begun = performance.now()
  const chosen = allParts.filter(({ name }) => words.length === 0 || words.some(word => name.includes(word)))
  console.log(`DSH_CRASH_SEED=${seed}`)
  const rows = await runAll(chosen.map(({ name }) => name))
  console.log(`\n${toTable(rows)}`)
  // For the README.
  console.log(`\n${toTable(byKind(rows, index => chosen[index]?.kind ?? ''))}`)
  console.log(`\n${((performance.now() - begun) / 1000).toFixed(0)} s`)
  for (const { scenario, failures } of rows)
    for (const failure of failures) console.log(`\n${scenario}: ${failure}`)
  if (rows.every(({ failures }) => failures.length === 0)) return
  console.log(`\nrepeat it with DSH_CRASH_SEED=${seed} npm run test:crash`)
  process.exitCode = 1
}

const [flag, only] = process.argv.slice(2)
if (flag === '--part') {
  const part = allParts.find(({ name }) => name === only)
  if (part === undefined) throw new RangeError(`no part is called "${only}"`)
  process.send?.(await part.run({ seed, scale: 'full' }))
} else {
  await main(process.argv.slice(2))
}
