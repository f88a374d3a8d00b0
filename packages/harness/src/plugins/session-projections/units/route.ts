import { isFields, isText } from '../../../kernel/index.ts'
import type { ProjectionUnit } from '../projection.ts'

/** Which model the last request went to. */
export interface Route {
  readonly provider: string
  readonly model: string
  readonly reasoningEffort: string | null
}

declare module '../projection.ts' {
  interface ProjectionStates {
    route: Route | null
  }
}

export const routeUnit: ProjectionUnit<Route | null, 'request/header'> = {
  key: 'route',
  stateVersion: 1,
  fold: {
    name: 'route',
    types: ['request/header'],
    init: () => null,
    apply(state, event) {
      const { provider, model, reasoningEffort = null } = event.data.header.config
      const isSame =
        state?.provider === provider && state.model === model && state.reasoningEffort === reasoningEffort
      return isSame ? state : { provider, model, reasoningEffort }
    },
  },
  isState: (value): value is Route | null =>
    value === null ||
    (isFields(value) &&
      isText(value['provider']) &&
      isText(value['model']) &&
      (value['reasoningEffort'] === null || isText(value['reasoningEffort']))),
}
