import { isFields } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

/** What a list of sessions shows of one. */
export interface SessionListMetadata {
  /** Nobody has asked anything yet. */
  readonly blank: boolean
  /** When a person last said something, in epoch milliseconds. */
  readonly lastPromptAt: number | null
}

declare module '../projection.ts' {
  interface ProjectionStates {
    sessionListMetadata: SessionListMetadata
  }
}

export const listMetadataUnit: ProjectionUnit<SessionListMetadata, 'user/message'> = {
  key: 'sessionListMetadata',
  stateVersion: 1,
  fold: {
    name: 'session list metadata',
    types: ['user/message'],
    init: () => ({ blank: true, lastPromptAt: null }),
    apply: (state, { data, time }) =>
      data.source.kind === 'user' ? { blank: false, lastPromptAt: time } : state,
  },
  isState: (value): value is SessionListMetadata =>
    isFields(value) &&
    typeof value['blank'] === 'boolean' &&
    (value['lastPromptAt'] === null || Number.isSafeInteger(value['lastPromptAt'])),
}
