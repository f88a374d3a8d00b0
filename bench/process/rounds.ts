import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { medianOf } from '../measure.ts'
import { costOf, floors, tailOf } from './clock.ts'
import type { Floors } from './clock.ts'
import type { Observed, Order, Told } from './provider.ts'
import { makeWorkspace, scenarios } from './scenario.ts'

export interface Contender {
  readonly name: string
  /** A shell command. It finds the task in PROMPT and the provider in the variables of `environment`. */
  readonly command: string
}

/** What one run of one program was like. */
export interface Result {
  readonly firstRequestMs: number
  readonly wallMs: number
  readonly cpuMs: number
  readonly peakMb: number
  /** From an answer to the next request, median; of the first ten and the last ten steps alike. */
  readonly stepMs: number
  readonly firstStepsMs: number
  readonly lastStepsMs: number
  readonly firstBytes: number
  readonly tools: number
}

export interface Rounds {
  readonly floors: readonly Floors[]
  /** By scenario, then by program. Runs that failed are not among them. */
  readonly results: ReadonlyMap<string, ReadonlyMap<string, readonly Result[]>>
  readonly failures: readonly string[]
}

export interface RoundsOptions {
  readonly contenders: readonly Contender[]
  readonly names: readonly string[]
  readonly rounds: number
  /** For homes, workspaces and output. */
  readonly folder: string
  readonly tell: (line: string) => void
}

/**
 * Runs every program in every scenario, round by round, so that whatever else the machine does meets all of them alike.
 * A first round fills caches and does not count.
 */
export async function runRounds(options: RoundsOptions): Promise<Rounds> {
  const { contenders, names, rounds, folder, tell } = options
  const provider = fork(join(import.meta.dirname, 'provider.ts'), {
    execArgv: ['--conditions=dsh-source'],
  })
  const measured: Floors[] = []
  const failures: string[] = []
  const results = new Map(names.map(name => [name, new Map<string, Result[]>()]))
  for (let round = 0; round <= rounds; round++) {
    if (round > 0) measured.push(await floors(bareProgram(folder)))
    for (const [name, contender] of names.flatMap(one => contenders.map(who => [one, who] as const))) {
      tell(`round ${round}: ${contender.name}, ${name}`)
      const result = await runOnce(provider, contender, name, folder)
      if (typeof result === 'string') failures.push(`${contender.name}, ${name}: ${result}`)
      else if (round > 0) add(results.get(name), contender.name, result)
    }
  }
  provider.disconnect()
  return { floors: measured, results, failures }
}

function add(byProgram: Map<string, Result[]> | undefined, name: string, result: Result): void {
  byProgram?.set(name, [...(byProgram.get(name) ?? []), result])
}

async function runOnce(
  provider: ChildProcess,
  { name, command }: Contender,
  scenario: string,
  folder: string,
): Promise<Result | string> {
  const home = join(folder, name, 'home')
  const workspace = join(folder, name, 'work')
  mkdirSync(join(home, 'tmp'), { recursive: true })
  makeWorkspace(workspace)
  const { url } = (await ask(provider, { scenario, folder: workspace })) as { readonly url: string }
  const log = join(folder, name, `${scenario}.log`)
  const argv = ['bash', '-c', `exec ${command}`]
  const cost = await costOf({ argv, env: environment(home, url), cwd: workspace, log })
  const observed = (await ask(provider, 'over')) as Observed
  const { steps = [] } = scenarios[scenario] ?? {}
  const isWhole = observed.arrivals.length === steps.length + 1 && observed.results === steps.flat().length
  if (cost.code !== 0 || !isWhole)
    return `exit ${cost.code}, ${observed.arrivals.length} requests, ${observed.results} results: ${await tailOf(log)}`
  const gaps = observed.arrivals.slice(1).map((at, index) => at - (observed.answers[index] ?? Number.NaN))
  return {
    firstRequestMs: (observed.arrivals[0] ?? Number.NaN) - cost.start,
    wallMs: cost.wallMs,
    cpuMs: cost.cpuMs,
    peakMb: cost.peakMb,
    stepMs: medianOf(gaps),
    firstStepsMs: medianOf(gaps.slice(0, 10)),
    lastStepsMs: medianOf(gaps.slice(-10)),
    firstBytes: observed.firstBytes,
    tools: observed.tools,
  }
}

async function ask(provider: ChildProcess, order: Order): Promise<Told> {
  provider.send(order)
  const [told] = (await once(provider, 'message')) as [Told]
  return told
}

/** Nothing of the caller's own settings reaches a program. */
function environment(home: string, url: string): Record<string, string> {
  return {
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    HOME: home,
    TMPDIR: join(home, 'tmp'),
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    CI: '1',
    NO_COLOR: '1',
    PROMPT: 'Do the task.',
    DSH_HOME: join(home, '.dsh'),
    DEEPSEEK_BASE_URL: url,
    DEEPSEEK_API_KEY: 'bench',
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: 'bench',
  }
}

function bareProgram(folder: string): Parameters<typeof floors>[0] {
  const home = join(folder, 'bare')
  mkdirSync(home, { recursive: true })
  return { argv: [], env: environment(home, ''), cwd: home, log: join(home, 'log') }
}
