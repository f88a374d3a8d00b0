import type { ContentBlock, TextBlock } from '@dsh/protocol'
import type { ArtifactStore } from '../../core/session/index.ts'
import { cutText, leftOutMark, utf8Length } from '../../core/tools/index.ts'

/**
 * Both ends of the text of `content` in `maxBytes`, the whole of it kept in `artifacts`, and what is no text behind it;
 * undefined where all may stay as it is.
 */
export async function spilled(
  content: readonly ContentBlock[],
  maxBytes: number,
  artifacts: ArtifactStore,
): Promise<readonly ContentBlock[] | undefined> {
  const isText = (block: ContentBlock): block is TextBlock => block.type === 'text'
  const text = content
    .filter(isText)
    .map(block => block.text)
    .join('\n')
  const total = utf8Length(text)
  if (total <= maxBytes) return undefined
  // A preview that says less than where the rest is says nothing.
  if (utf8Length(leftOutMark(total, '0'.repeat(64))) > maxBytes) return undefined
  const { sha256 } = await artifacts.put(Buffer.from(text, 'utf8'), 'text/plain')
  const preview = cutText(text, maxBytes, { keep: 'ends', mark: omitted => leftOutMark(omitted, sha256) })
  return [{ type: 'text', text: preview }, ...content.filter(block => !isText(block))]
}
