import { examine, killStates, powerLossStates, randomOf } from '../../src/testing/index.ts'
import type { CrashState, Random } from '../../src/testing/index.ts'
import { Machine } from './machine.ts'
import type { MachineOptions } from './machine.ts'
import { Tally } from './report.ts'
import type { Row } from './report.ts'

/** Something that programs on one machine do; whatever they do before the last `beginTrace` is only how it came to that. */
export interface Scenario {
  readonly name: string
  run(machine: Machine, random: Random): Promise<void>
}

export interface EnumerateOptions extends Pick<MachineOptions, 'wrap'> {
  readonly seed: string
  /** At most so many states of killed programs, and of power failures. */
  readonly limit: number
  /** How many crashes while a crash is being recovered from. */
  readonly again: number
}

/** Runs a scenario once, and examines what is left by crashes at every moment of it. */
export async function enumerate(scenario: Scenario, options: EnumerateOptions): Promise<Row> {
  const { seed, limit, again, wrap } = options
  const random = randomOf(`${seed} ${scenario.name}`)
  const machine = new Machine(wrap === undefined ? {} : { wrap })
  await scenario.run(machine, random)
  const states = [
    ...sample(killStates(machine.fs, random), limit, random),
    ...powerLossStates(machine.fs, random, limit),
  ]
  const tally = new Tally(scenario.name)
  const chance = Math.max(1, Math.floor(states.length / Math.max(1, again)))
  for (const [index, state] of states.entries()) {
    const left = machine.after(state)
    tally.add(state.text, await examine(left.remains, left.ledger.current))
    if (again > 0 && index % chance === 0) await crashAgain(left, state, random, tally)
  }
  return tally.row
}

/** The recovery itself is cut off, too. */
async function crashAgain(left: Machine, first: CrashState, random: Random, tally: Tally): Promise<void> {
  const killed = random.pick(killStates(left.fs, random))
  for (const state of [killed, ...powerLossStates(left.fs, random, 2)]) {
    const again = left.after(state)
    tally.add(`${first.text}, then ${state.text}`, await examine(again.remains, again.ledger.current))
  }
}

function sample<T>(values: readonly T[], limit: number, random: Random): readonly T[] {
  if (values.length <= limit) return values
  const step = values.length / limit
  return Array.from({ length: limit }, (_, index) => {
    const at = Math.floor(index * step + (random.below(100) / 100) * step)
    return values[Math.min(at, values.length - 1)] as T
  })
}
