import type { SessionEvent } from '@dsh/protocol'
import type { FoldDefinition, Session } from '../session/index.ts'

const offeringTypes = ['request/header', 'tools/offered', 'tool/call'] as const

/** Names of tools that a model was offered, or called; a deferred one among them is offered from then on. */
export const offeredTools: FoldDefinition<ReadonlySet<string>, (typeof offeringTypes)[number]> = {
  name: 'offered tools',
  types: offeringTypes,
  init: () => new Set(),
  apply(state: ReadonlySet<string>, event: SessionEvent<(typeof offeringTypes)[number]>) {
    const added = namesIn(event).filter(name => !state.has(name))
    return added.length === 0 ? state : new Set([...state, ...added])
  },
}

function namesIn(event: SessionEvent<(typeof offeringTypes)[number]>): readonly string[] {
  switch (event.type) {
    case 'request/header':
      return event.data.header.tools?.map(({ name }) => name) ?? []
    case 'tools/offered':
      return event.data.names
    case 'tool/call':
      return [event.data.name]
  }
}

/** Offers deferred tools to the model of `session` from its next request on. Logs only what is new. */
export function offerTools(session: Session, names: Iterable<string>): void {
  const known = session.fold(offeredTools)
  const added = [...new Set(names)].filter(name => !known.has(name))
  if (added.length > 0) session.append('tools/offered', { names: added })
}
