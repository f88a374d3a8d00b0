import { foldSurface } from '../../core/session/index.ts'
import type { MediumProblem, Session } from '../../core/session/index.ts'
import { jsonEquals } from '../../kernel/index.ts'

/** Whether the model's view, folded once more from the events alone, is the one that the session shows. */
export function problemsOfSurface(session: Session): readonly MediumProblem[] {
  const { nodes } = foldSurface(session.events)
  const shown = session.surface.nodes
  const at = nodes.findIndex((seq, index) => seq !== shown[index])
  if (at >= 0 || nodes.length !== shown.length) {
    const seq = nodes[at < 0 ? shown.length : at] ?? shown[nodes.length] ?? 0
    const message = `the surface has ${nodes.length} nodes, the session shows ${shown.length}; they part at event ${seq}`
    return [{ code: 'SURFACE_DIFFERS', message, seq }]
  }
  const messages = nodes.flatMap(seq => {
    const event = session.at(seq)
    const message = event === undefined ? null : session.deriveEventMessage(event)
    return message === null ? [] : [{ seq, message }]
  })
  const wrong = messages.find(({ message }, index) => !jsonEquals(message, session.messages[index]))
  if (wrong === undefined) return []
  return [
    {
      code: 'SURFACE_DIFFERS',
      message: `the message of event ${wrong.seq} is another one on the surface`,
      seq: wrong.seq,
    },
  ]
}
