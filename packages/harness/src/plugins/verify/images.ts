import type { ImageBlock, Message } from '@dsh/protocol'
import type { MediumProblem, Session } from '../../core/session/index.ts'

/** Whether every picture that a message shows is there, and is the one it names. */
export async function problemsOfImages(session: Session): Promise<readonly MediumProblem[]> {
  const problems: MediumProblem[] = []
  const looked = new Set<string>()
  for (const event of session.since(0)) {
    const message = session.deriveEventMessage(event)
    for (const { sha256 } of message === null ? [] : imagesIn(message)) {
      if (looked.has(sha256)) continue
      looked.add(sha256)
      if ((await session.artifacts.get(sha256)) !== undefined) continue
      const text = `a picture of event ${event.seq} is missing or damaged: artifact ${sha256}`
      problems.push({ code: 'IMAGE_MISSING', message: text, seq: event.seq })
    }
  }
  return problems
}

function imagesIn({ content }: Message): readonly ImageBlock['attachment'][] {
  const inner = content.flatMap(block => (block.type === 'tool-result' ? block.content : [block]))
  return inner.flatMap(block => (block.type === 'image' ? [block.attachment] : []))
}
