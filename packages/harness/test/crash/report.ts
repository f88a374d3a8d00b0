import type { Finding } from '../../src/testing/index.ts'

/** One row of the table that the gate prints. */
export interface Row {
  readonly scenario: string
  /** Crash states and kill points that were tried. */
  readonly states: number
  /** Those after which everything was as it must be. */
  readonly recovered: number
  /** Acknowledged events that were not there. */
  readonly lost: number
  readonly seconds: number
  /** What was not right, with the state it was found in. */
  readonly failures: readonly string[]
}

/** Counts states and what was found in them. */
export class Tally {
  readonly #scenario: string
  readonly #begun = performance.now()
  readonly #failures: string[] = []
  #states = 0
  #failed = 0
  #lost = 0

  constructor(scenario: string) {
    this.#scenario = scenario
  }

  add(state: string, findings: readonly Finding[]): void {
    this.#states += 1
    if (findings.length === 0) return
    this.#failed += 1
    for (const { rule, id, text, lost } of findings) {
      this.#lost += lost
      if (this.#failures.length < 40) this.#failures.push(`${state}: [${rule}] ${id ?? ''}: ${text}`)
    }
  }

  get row(): Row {
    return {
      scenario: this.#scenario,
      states: this.#states,
      recovered: this.#states - this.#failed,
      lost: this.#lost,
      seconds: (performance.now() - this.#begun) / 1000,
      failures: this.#failures,
    }
  }
}

/** The rows as a Markdown table with a sum. */
export function toTable(rows: readonly Row[]): string {
  const sum = (of: (row: Row) => number): number => rows.reduce((total, row) => total + of(row), 0)
  const total = {
    scenario: '**all**',
    states: sum(row => row.states),
    recovered: sum(row => row.recovered),
    lost: sum(row => row.lost),
    seconds: sum(row => row.seconds),
  }
  const lines = [...rows, total].map(
    ({ scenario, states, recovered, lost, seconds }) =>
      `| ${scenario} | ${states} | ${recovered} | ${lost} | ${seconds.toFixed(1)} |`,
  )
  return ['| scenario | crashes | recovered | lost | s |', '|---|--:|--:|--:|--:|', ...lines].join('\n')
}

/** One row for all rows of the same kind. */
export function byKind(rows: readonly Row[], kindOf: (index: number) => string): readonly Row[] {
  const kinds = Map.groupBy(rows.entries(), ([index]) => kindOf(index))
  return [...kinds].map(([scenario, entries]) => {
    const sum = (of: (row: Row) => number): number => entries.reduce((total, [, row]) => total + of(row), 0)
    return {
      scenario,
      states: sum(row => row.states),
      recovered: sum(row => row.recovered),
      lost: sum(row => row.lost),
      seconds: sum(row => row.seconds),
      failures: [],
    }
  })
}

/** The row of a part that never came to its end. */
export function failedRow(scenario: string, text: string): Row {
  return { scenario, states: 1, recovered: 0, lost: 0, seconds: 0, failures: [text] }
}
