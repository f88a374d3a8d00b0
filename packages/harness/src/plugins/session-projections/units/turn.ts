import { turnCursor } from '../../../core/session/index.ts'
import { isCount, isFields } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

const types = ['turn/start', 'turn/end', 'step/start', 'step/end'] as const

/** Where the log stands: the open turn and step, null between them, and how many turns began. */
export interface TurnPlace {
  readonly openTurn: number | null
  readonly openStep: number | null
  readonly lastTurn: number
}

declare module '../projection.ts' {
  interface ProjectionStates {
    turn: TurnPlace
  }
}

export const turnUnit: ProjectionUnit<TurnPlace, (typeof types)[number]> = {
  key: 'turn',
  stateVersion: 1,
  fold: {
    name: 'turn',
    types,
    init: header => placeOf(turnCursor.init(header)),
    apply: ({ openTurn, openStep, lastTurn }, event) =>
      placeOf(
        turnCursor.apply(
          { openTurn: openTurn ?? undefined, openStep: openStep ?? undefined, lastTurn },
          event,
        ),
      ),
  },
  isState: (value): value is TurnPlace =>
    isFields(value) &&
    isCount(value['lastTurn']) &&
    [value['openTurn'], value['openStep']].every(place => place === null || isCount(place)),
}

interface CursorLike {
  readonly openTurn?: number | undefined
  readonly openStep?: number | undefined
  readonly lastTurn: number
}

function placeOf({ openTurn, openStep, lastTurn }: CursorLike): TurnPlace {
  return { openTurn: openTurn ?? null, openStep: openStep ?? null, lastTurn }
}
