import { medianOf } from '../measure.ts'
import type { Floors } from './clock.ts'
import type { InstallFacts } from './install.ts'
import type { Result, Rounds } from './rounds.ts'
import { scenarios } from './scenario.ts'

type Quantity = 'firstRequestMs' | 'wallMs' | 'cpuMs' | 'peakMb' | 'stepMs' | 'lastStepsMs'

interface Row {
  readonly scenario: string
  readonly about: string
  readonly quantity: Quantity
  readonly unit: 'ms' | 'MB'
  /** What of the machine itself it is set against, and how often it may be that. */
  readonly floor?: { readonly of: keyof Floors; readonly budget: number }
  /** How much of the named peer's it may be. */
  readonly budget?: number
}

const peerOfBudgets = 'pi'

const rows: readonly Row[] = [
  {
    scenario: 'answer',
    about: 'start to first request',
    quantity: 'firstRequestMs',
    unit: 'ms',
    floor: { of: 'nodeMs', budget: 4 },
    budget: 0.4,
  },
  { scenario: 'answer', about: 'CPU', quantity: 'cpuMs', unit: 'ms' },
  { scenario: 'answer', about: 'peak memory', quantity: 'peakMb', unit: 'MB' },
  {
    scenario: 'shells',
    about: 'a step',
    quantity: 'stepMs',
    unit: 'ms',
    floor: { of: 'shellMs', budget: 1.5 },
    budget: 0.45,
  },
  { scenario: 'shells', about: 'CPU', quantity: 'cpuMs', unit: 'ms', budget: 0.4 },
  { scenario: 'reads', about: 'a step', quantity: 'stepMs', unit: 'ms', budget: 0.3 },
  { scenario: 'reads', about: 'CPU', quantity: 'cpuMs', unit: 'ms' },
  { scenario: 'reads', about: 'peak memory', quantity: 'peakMb', unit: 'MB', budget: 0.5 },
  { scenario: 'parallel', about: 'the step', quantity: 'stepMs', unit: 'ms' },
  { scenario: 'deltas', about: 'wall', quantity: 'wallMs', unit: 'ms' },
  { scenario: 'deltas', about: 'CPU', quantity: 'cpuMs', unit: 'ms' },
]

/** A Markdown table of medians, each against the floor and the other programs of the same rounds. */
export function roundsTable({ floors, results }: Rounds, own: string, others: readonly string[]): string {
  const floor: Floors = {
    nodeMs: medianOf(floors.map(({ nodeMs }) => nodeMs)),
    shellMs: medianOf(floors.map(({ shellMs }) => shellMs)),
  }
  const head = ['', own, '× floor', ...others.map(name => `× ${name}`), 'budget', '']
  const lines = rows.flatMap(row => {
    const median = (name: string): number => medianIn(results.get(row.scenario)?.get(name), row.quantity)
    const value = median(own)
    if (Number.isNaN(value)) return []
    const ofFloor = row.floor === undefined ? undefined : value / floor[row.floor.of]
    const ratios = others.map(name => value / median(name))
    const ofPeer = ratios[others.indexOf(peerOfBudgets)]
    return [
      [
        `${row.scenario}: ${row.about}`,
        `${value.toFixed(row.unit === 'ms' && value < 100 ? 1 : 0)} ${row.unit}`,
        ofFloor === undefined ? '' : ofFloor.toFixed(2),
        ...ratios.map(ratio => (Number.isNaN(ratio) ? '–' : ratio.toFixed(2))),
        budgetText(row),
        verdict(row, ofFloor, ofPeer),
      ],
    ]
  })
  const drift = driftLine(results.get('reads')?.get(own), others.length)
  return markdown([head, ...lines, ...(drift === undefined ? [] : [drift])])
}

function medianIn(results: readonly Result[] | undefined, quantity: Quantity): number {
  return medianOf((results ?? []).map(result => result[quantity]))
}

function budgetText({ floor, budget }: Row): string {
  const parts = [
    ...(floor === undefined ? [] : [`≤ ${floor.budget} × floor`]),
    ...(budget === undefined ? [] : [`≤ ${budget} × ${peerOfBudgets}`]),
  ]
  return parts.join(', ')
}

function verdict({ floor, budget }: Row, ofFloor: number | undefined, ofPeer: number | undefined): string {
  if (floor === undefined && (budget === undefined || ofPeer === undefined)) return ''
  const isOver =
    (floor !== undefined && (ofFloor ?? 0) > floor.budget) ||
    (budget !== undefined && ofPeer !== undefined && ofPeer > budget)
  return isOver ? 'OVER' : 'ok'
}

function driftLine(results: readonly Result[] | undefined, others: number): string[] | undefined {
  if (results === undefined) return undefined
  const ratio = medianOf(results.map(({ firstStepsMs, lastStepsMs }) => lastStepsMs / firstStepsMs))
  const isFlat = ratio >= 0.8 && ratio <= 1.2
  const blanks = Array.from({ length: others }, () => '')
  const name = 'reads: last ten steps against the first ten'
  return [name, ratio.toFixed(2), '', ...blanks, '0.8 … 1.2', isFlat ? 'ok' : 'OVER']
}

export function installTable({ packages, megabytes, scripts }: InstallFacts): string {
  const line = (name: string, value: number, budget: number): string[] => [
    name,
    Number(value.toFixed(1)).toString(),
    `≤ ${budget}`,
    value <= budget ? 'ok' : 'OVER',
  ]
  return markdown([
    ['install', 'value', 'budget', ''],
    line('packages', packages, 60),
    line('MB', megabytes, 45),
    line('packages with install scripts', scripts.length, 0),
  ])
}

export function scenarioList(names: readonly string[]): string {
  return names.map(name => `${name} = ${scenarios[name]?.about ?? ''}`).join('; ')
}

function markdown([head = [], ...lines]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...lines.map(line)].join('\n')
}
