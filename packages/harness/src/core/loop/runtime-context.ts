import { surfaceEventTypes } from '@dsh/protocol'
import type { MessageSource, SessionEvent, SurfaceEventType, UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../llm/index.ts'
import { renderContextSnapshot } from '../prompt/index.ts'
import type { FoldDefinition, Session } from '../session/index.ts'

type Sections = readonly { readonly name: string; readonly text: string }[]

interface Snapshot {
  readonly seq: number
  readonly sections: Sections
}

const plugin = '@dsh/system-prompt'

/** The last snapshot of the runtime context that the model still has before it. */
const runtimeContext: FoldDefinition<Snapshot | undefined, SurfaceEventType> = {
  name: 'runtime context',
  types: surfaceEventTypes,
  init: () => undefined,
  apply(state: Snapshot | undefined, event: SessionEvent<SurfaceEventType>) {
    if (event.surfaceOp !== 'append')
      return state !== undefined && event.sourceEventSeqs?.includes(state.seq) === true ? undefined : state
    if (event.type !== 'user/message') return state
    const sections = sectionsOf(event.data.source)
    return sections === undefined ? state : { seq: event.seq, sections }
  },
}

/** The message that brings the model's view of `contexts` up to date, if it is not. */
export function nextSnapshot(session: Session, contexts: Sections): UserMessage | undefined {
  const sections = contexts.filter(({ text }) => text !== '').map(({ name, text }) => ({ name, text }))
  const known = session.fold(runtimeContext)?.sections ?? []
  if (isSame(known, sections)) return undefined
  return createUserMessage({
    content: [{ type: 'text', text: renderContextSnapshot(sections) }],
    source: { kind: 'plugin', plugin, form: 'snapshot', sections },
  })
}

function sectionsOf(source: MessageSource): Sections | undefined {
  if (source.kind !== 'plugin' || source.plugin !== plugin || source.form !== 'snapshot') return undefined
  return source.sections
}

function isSame(a: Sections, b: Sections): boolean {
  return (
    a.length === b.length && a.every(({ name, text }, at) => b[at]?.name === name && b[at]?.text === text)
  )
}
