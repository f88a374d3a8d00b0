import { flipBits, sweepBytes } from './byte-sweep.ts'
import { enumerate } from './enumerate.ts'
import type { Scenario } from './enumerate.ts'
import { killAtPoints, killWhileAppending, killWhileMending } from './failpoints.ts'
import { injectFaults } from './faults.ts'
import { loopScenario } from './loop.ts'
import type { MediumName } from './media.ts'
import { cutOffRepairs } from './repairing.ts'
import type { Row } from './report.ts'
import { letCompete } from './rivals.ts'
import { jsonlScenarios } from './scenarios.ts'
import { soak } from './soak.ts'
import { failPower } from './sqlite-power.ts'

export interface PartOptions {
  readonly seed: string
  /** 'full' takes minutes, 'short' seconds. */
  readonly scale: 'full' | 'short'
}

/** One row of the gate. */
export interface Part {
  readonly name: string
  /** What the parts of one kind have in common, in words for the README. */
  readonly kind: string
  run(options: PartOptions): Promise<Row>
}

const bytesAndBits = 'each byte of an unfinished write, each bit of a finished one'
const killedPrograms = 'real programs killed with SIGKILL, JSONL and SQLite'

function scenarioPart(scenario: Scenario): Part {
  return {
    name: scenario.name,
    kind: 'killed, or without power, at any moment of a scenario (model disk)',
    run: ({ seed, scale }) =>
      enumerate(scenario, scale === 'full' ? { seed, limit: 150, again: 90 } : { seed, limit: 20, again: 8 }),
  }
}

/** What is tried in memory, where every moment and every outcome of a power failure can be had. */
export const modelParts: readonly Part[] = [
  ...[...jsonlScenarios, loopScenario()].map(scenarioPart),
  {
    name: 'repairs',
    kind: 'repairs that are cut off',
    run: ({ seed, scale }) => cutOffRepairs({ seed, limit: scale === 'full' ? 150 : 20 }),
  },
  {
    name: 'bytes of a short write',
    kind: bytesAndBits,
    run: ({ seed, scale }) => sweepBytes(0, { seed, stride: scale === 'full' ? 1 : 29 }),
  },
  {
    name: 'bytes of a long write',
    kind: bytesAndBits,
    run: ({ seed, scale }) => sweepBytes(6000, { seed, stride: scale === 'full' ? 1 : 29 }),
  },
  {
    name: 'bits',
    kind: bytesAndBits,
    run: ({ seed, scale }) => flipBits({ seed, stride: scale === 'full' ? 2 : 101 }),
  },
  {
    name: 'faults',
    kind: 'failing system calls, then a crash',
    run: ({ seed, scale }) => injectFaults({ seed, places: scale === 'full' ? 8 : 1 }),
  },
  {
    name: 'database power',
    kind: 'power failures of a SQLite database',
    run: ({ seed, scale }) => failPower({ seed, states: scale === 'full' ? 250 : 50 }),
  },
]

/** Deaths of real programs, on real files. */
export const processParts: readonly Part[] = [
  ...(['jsonl', 'sqlite'] as const).flatMap(partsOf),
  {
    name: 'mending points',
    kind: killedPrograms,
    run: ({ scale }) =>
      killWhileMending(
        Array.from({ length: scale === 'full' ? 24 : 2 }, (_, at) =>
          scale === 'full' ? at + 1 : 7 * at + 9,
        ),
      ),
  },
]

function partsOf(medium: MediumName): readonly Part[] {
  return [
    {
      name: `points of ${medium}`,
      kind: killedPrograms,
      run: ({ scale }) => killAtPoints({ medium, choose: scale === 'full' ? withoutMostChunks : fewOf }),
    },
    {
      name: `appends of ${medium}`,
      kind: killedPrograms,
      run: ({ seed, scale }) =>
        killWhileAppending(
          scale === 'full'
            ? { medium, seed, sessions: medium === 'sqlite' ? 50 : 25, lives: 4 }
            : { medium, seed, sessions: 2, lives: 2 },
        ),
    },
    { name: `rivals of ${medium}`, kind: 'two programs on one session', run: () => letCompete(medium) },
  ]
}

/** One chunk is much like the next. */
function withoutMostChunks(points: readonly string[]): readonly string[] {
  return points.filter(point => !point.includes('chunk') || Number(point.split(' ').at(-1)) % 6 === 1)
}

const fewPoints = [
  'claim 1',
  'dispatch 1',
  'assistant/chunk 4',
  'assistant/message 1',
  'effect 1',
  'turn/end 1',
  'idle 2',
]

function fewOf(points: readonly string[]): readonly string[] {
  return points.filter(point => fewPoints.includes(point))
}

function soakPart(nth: number): Part {
  return {
    name: `soak ${nth}`,
    kind: 'random lives of many sessions on JSONL, SQLite and a model',
    run: ({ seed, scale }) =>
      soak(
        scale === 'full'
          ? { seed: `${seed}-${nth}`, operations: 5500, crashes: 220 }
          : { seed: `${seed}-${nth}`, operations: 300, crashes: 12 },
      ),
  }
}

export const soakParts: readonly Part[] = [1, 2, 3].map(soakPart)

// The longest come first, so that no core waits for the last one.
export const allParts: readonly Part[] = [...processParts, ...soakParts, ...modelParts]
