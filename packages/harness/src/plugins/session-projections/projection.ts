import type { JsonValue, SessionEventType } from '@dsh/protocol'
import type { FoldDefinition } from '../../core/session/index.ts'
import { adopt, isCount, isText, messageOf } from '../../kernel/index.ts'
import { ProjectionError } from './errors.ts'

/** What the state of a key is. Plugins merge their own in. */
export interface ProjectionStates {}

export type ProjectionKey = keyof ProjectionStates & string

/** A fold that is known by a key, so that others can show and keep its value without knowing what it is about. */
export interface ProjectionUnit<State, Type extends SessionEventType = SessionEventType> {
  readonly key: string
  /** From 0; raised whenever an older state means something else. */
  readonly stateVersion: number
  /** Its states are plain JSON, and its events carry whole values, not differences. */
  readonly fold: FoldDefinition<State, Type>
  /** Whether something that was stored once is a state. */
  isState(value: unknown): value is State
  /** What is shown of a state; the state itself where absent. */
  view?(state: State): JsonValue
}

export type AnyUnit = ProjectionUnit<unknown, never>

export interface ProjectionSnapshot {
  /** The last event that counts; -1 where none does. */
  readonly asOfSeq: number
  readonly values: Readonly<Record<string, JsonValue>>
  /** Why a key has no value. */
  readonly problems?: Readonly<Record<string, string>>
}

/** Throws INVALID_PROJECTION, naming what is wrong. */
export function checkUnit({ key, stateVersion }: Pick<AnyUnit, 'key' | 'stateVersion'>): void {
  if (!isText(key)) throw new ProjectionError('INVALID_PROJECTION', 'the key of a projection is a text')
  if (isCount(stateVersion)) return
  const problem = `stateVersion is ${JSON.stringify(stateVersion)}, expected a whole number from 0`
  throw new ProjectionError('INVALID_PROJECTION', `projection "${key}": ${problem}`)
}

/** What a unit shows of a state; throws INVALID_VIEW where that is not JSON. */
export function viewOf(unit: AnyUnit, state: unknown): JsonValue {
  const value = unit.view === undefined ? state : unit.view(state)
  try {
    return adopt(value, 'view') as JsonValue
  } catch (cause) {
    throw new ProjectionError('INVALID_VIEW', `projection "${unit.key}": ${messageOf(cause)}`, { cause })
  }
}

/** The values of `units` from the states that `stateOf` gives; one that fails leaves the others alone. */
export function snapshotOf(
  units: Iterable<AnyUnit>,
  asOfSeq: number,
  stateOf: (unit: AnyUnit) => unknown,
): ProjectionSnapshot {
  const values: [string, JsonValue][] = []
  const problems: [string, string][] = []
  for (const unit of units) {
    try {
      values.push([unit.key, viewOf(unit, stateOf(unit))])
    } catch (error) {
      problems.push([unit.key, messageOf(error)])
    }
  }
  const snapshot = { asOfSeq, values: Object.fromEntries(values) }
  return problems.length === 0 ? snapshot : { ...snapshot, problems: Object.fromEntries(problems) }
}
