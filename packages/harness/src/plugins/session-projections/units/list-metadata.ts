import { isFields } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

/** What a list of sessions shows of one. */
export interface SessionListMetadata {
  /** Nobody has asked anything yet. */
  readonly blank: boolean
  /** When a person last said something, in epoch milliseconds. */
  readonly lastPromptAt: number | null
  /** Lists leave it out, until it is worked on again. */
  readonly archived: boolean
}

declare module '../projection.ts' {
  interface ProjectionStates {
    sessionListMetadata: SessionListMetadata
  }
}

const metadataTypes = ['user/message', 'session/archived', 'turn/start'] as const

export const listMetadataUnit: ProjectionUnit<SessionListMetadata, (typeof metadataTypes)[number]> = {
  key: 'sessionListMetadata',
  stateVersion: 1,
  fold: {
    name: 'session list metadata',
    types: metadataTypes,
    init: () => ({ blank: true, lastPromptAt: null, archived: false }),
    apply(state, event) {
      switch (event.type) {
        case 'session/archived':
          return withArchived(state, event.data.archived)
        case 'turn/start':
          return withArchived(state, false)
        case 'user/message':
          return event.data.source.kind === 'user'
            ? { ...state, blank: false, lastPromptAt: event.time }
            : state
      }
    },
  },
  isState: (value): value is SessionListMetadata =>
    isFields(value) &&
    typeof value['blank'] === 'boolean' &&
    typeof value['archived'] === 'boolean' &&
    (value['lastPromptAt'] === null || Number.isSafeInteger(value['lastPromptAt'])),
}

function withArchived(state: SessionListMetadata, archived: boolean): SessionListMetadata {
  return state.archived === archived ? state : { ...state, archived }
}
