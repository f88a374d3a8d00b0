import { jsonEquals, parseJson } from '@dsh/harness/kernel'
import type { RunFacts, StepFacts } from '@dsh/harness/plugins/replay'

/** One thing that a model did: a call, or an answer without one. */
export interface Act {
  /** `2.1`, turn and step. */
  readonly place: string
  readonly text: string
  readonly call: StepFacts['calls'][number] | undefined
}

export interface ActPair {
  readonly recorded: Act | undefined
  readonly replayed: Act | undefined
  /** Only one of them is a call, or they are two different ones; what is said is never the same. */
  readonly isOther: boolean
}

/** What two models did, turn by turn and in order: how many calls one answer holds is each model's own habit. */
export function actsBeside(recorded: RunFacts, replayed: RunFacts): ActPair[] {
  const [left, right] = [turnsOf(recorded), turnsOf(replayed)]
  const turns = Math.max(left.length, right.length)
  return Array.from({ length: turns }, (_, turn) => pairsOf(left[turn] ?? [], right[turn] ?? [])).flat()
}

function turnsOf({ steps }: RunFacts): Act[][] {
  return [...Map.groupBy(steps, ({ turn }) => turn).values()].map(each => each.flatMap(actsOf))
}

function actsOf({ turn, step, text, calls }: StepFacts): Act[] {
  const place = `${turn}.${step}`
  return calls.length === 0 ? [{ place, text, call: undefined }] : calls.map(call => ({ place, text, call }))
}

function pairsOf(left: readonly Act[], right: readonly Act[]): ActPair[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const [recorded, replayed] = [left[index], right[index]]
    return { recorded, replayed, isOther: !isSame(recorded, replayed) }
  })
}

function isSame(a: Act | undefined, b: Act | undefined): boolean {
  if (a === undefined || b === undefined) return false
  if (a.call === undefined || b.call === undefined) return a.call === b.call
  return a.call.name === b.call.name && jsonEquals(argumentsOf(a.call), argumentsOf(b.call))
}

function argumentsOf({ arguments: text }: StepFacts['calls'][number]): unknown {
  return parseJson(text) ?? text
}
