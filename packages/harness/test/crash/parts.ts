import { flipBits, sweepBytes } from './byte-sweep.ts'
import { enumerate } from './enumerate.ts'
import type { Scenario } from './enumerate.ts'
import { injectFaults } from './faults.ts'
import { loopScenario } from './loop.ts'
import type { Row } from './report.ts'
import { jsonlScenarios } from './scenarios.ts'

export interface PartOptions {
  readonly seed: string
  /** 'full' takes minutes, 'short' seconds. */
  readonly scale: 'full' | 'short'
}

/** One row of the gate. */
export interface Part {
  readonly name: string
  run(options: PartOptions): Promise<Row>
}

function scenarioPart(scenario: Scenario): Part {
  return {
    name: scenario.name,
    run: ({ seed, scale }) =>
      enumerate(
        scenario,
        scale === 'full' ? { seed, limit: 200, again: 200 } : { seed, limit: 25, again: 10 },
      ),
  }
}

/** What is tried in memory, where every moment and every outcome of a power failure can be had. */
export const modelParts: readonly Part[] = [
  ...[...jsonlScenarios, loopScenario()].map(scenarioPart),
  {
    name: 'bytes of a short write',
    run: ({ seed, scale }) => sweepBytes(0, { seed, stride: scale === 'full' ? 1 : 17 }),
  },
  {
    name: 'bytes of a long write',
    run: ({ seed, scale }) => sweepBytes(6000, { seed, stride: scale === 'full' ? 1 : 17 }),
  },
  { name: 'bits', run: ({ seed, scale }) => flipBits({ seed, stride: scale === 'full' ? 2 : 101 }) },
  { name: 'faults', run: ({ seed, scale }) => injectFaults({ seed, places: scale === 'full' ? 8 : 1 }) },
]

export const allParts: readonly Part[] = modelParts
