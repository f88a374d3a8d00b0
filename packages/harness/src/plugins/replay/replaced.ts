import type { SessionEvent } from '@dsh/protocol'
import { createAssistantMessage, createUserMessage } from '../../core/llm/index.ts'
import type { Session, SurfaceEvent, SurfaceManager } from '../../core/session/index.ts'
import type { RecordedReplacement } from './recording.ts'

/** A replacement by its place in the history of that moment; undefined for an event that only adds to it. */
export function replacementOf(event: SurfaceEvent, surface: SurfaceManager): RecordedReplacement | undefined {
  const span = surface.spanOf(event.surfaceOp)
  if (span === undefined) return undefined
  const { type, data } = event
  const { content, source } = type === 'user/message' ? data : data.message
  return { ...span, type, content, source } as RecordedReplacement
}

/**
 * Replaces a part of the history as it was replaced when it was recorded. It is an input like the answers: what stands
 * for the part was often written by a model.
 */
export function replaceAgain(session: Session, recorded: RecordedReplacement): void {
  const { index, count } = recorded
  const seqs = session.surface.nodes.slice(index, index + count)
  const [start, end] = [seqs[0], seqs.at(-1)]
  // A history that is another one already shows as a difference of its own.
  if (start === undefined || end === undefined || seqs.length < count) return
  const intent = { surfaceOp: { op: 'replace', start, end }, sourceEventSeqs: seqs } as const
  const old = session.at(start)
  if (recorded.type === 'user/message') {
    session.append('user/message', createUserMessage(recorded), intent)
  } else if (recorded.type === 'assistant/message' && old?.type === 'assistant/message') {
    const { turn, step } = old.data
    session.append('assistant/message', { turn, step, message: createAssistantMessage(recorded) }, intent)
  } else if (recorded.type === 'tool/result' && old?.type === 'tool/result') {
    session.append('tool/result', withContent(old, recorded), intent)
  }
}

function withContent(
  { data }: SessionEvent<'tool/result'>,
  { content }: Extract<RecordedReplacement, { type: 'tool/result' }>,
): SessionEvent<'tool/result'>['data'] {
  const [block] = data.message.content
  return { ...data, message: { ...data.message, content: [{ ...block, content: content[0].content }] } }
}
