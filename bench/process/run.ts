import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { medianOf } from '../measure.ts'
import { installFacts, installPacked } from './install.ts'
import { runRounds } from './rounds.ts'
import type { Contender } from './rounds.ts'
import { scenarios } from './scenario.ts'
import { installTable, roundsTable, scenarioList } from './table.ts'

// npm run bench:process -- [--rounds N] [--scenarios a,b] [--installed DIR] [--peer NAME=COMMAND]… [--keep]
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    scenarios: { type: 'string', default: Object.keys(scenarios).join(',') },
    installed: { type: 'string' },
    peer: { type: 'string', multiple: true, default: [] },
    keep: { type: 'boolean', default: false },
  },
})

const folder = mkdtempSync(join(tmpdir(), 'dsh-bench-'))
const tell = (line: string): void => void process.stderr.write(`${line}\n`)

let installed = join(folder, 'installed')
if (values.installed === undefined) {
  tell('build, pack, install')
  installPacked(installed)
} else {
  installed = resolve(values.installed)
}

const own: Contender = {
  name: 'dsh',
  command: `"${join(installed, 'node_modules/.bin/dsh')}" run --permission full-access "$PROMPT"`,
}
const others = values.peer.map(toContender)
const names = values.scenarios.split(',')
const rounds = await runRounds({
  contenders: [own, ...others],
  names,
  rounds: Number(values.rounds),
  folder,
  tell,
})

const floor = (of: 'nodeMs' | 'shellMs'): string => medianOf(rounds.floors.map(at => at[of])).toFixed(1)
console.log(`${scenarioList(names)}\n`)
console.log(`floors: node -e 0 ${floor('nodeMs')} ms, bash -c true ${floor('shellMs')} ms\n`)
const otherNames = others.map(({ name }) => name)
console.log(`${roundsTable(rounds, own.name, otherNames)}\n`)
console.log(installTable(installFacts(installed)))
for (const failure of rounds.failures) console.log(`FAILED ${failure}`)

if (values.keep) tell(`kept: ${folder}`)
else rmSync(folder, { recursive: true })

function toContender(text: string): Contender {
  const equals = text.indexOf('=')
  if (equals < 1) throw new TypeError(`--peer takes NAME=COMMAND, not "${text}"`)
  return { name: text.slice(0, equals), command: text.slice(equals + 1) }
}
