import { keepText } from '../../core/tools/index.ts'
import type { CapturedOutput } from '../subprocess/index.ts'
import { inertText, withoutOpenSequence } from './inert.ts'

/** What is shown of one stream, and the text that is kept of it where that is more. */
export interface BoundedOutput {
  readonly head: string
  readonly tail: string
  /** Bytes between head and tail. */
  readonly omittedBytes: number
  /** Everything that was kept; only where not all of it is shown. */
  readonly kept: string | undefined
}

/** The two ends of a stream in `maxBytes`, without anything that a terminal, a log or a model would obey. */
export function boundOutput(output: CapturedOutput, maxBytes: number): BoundedOutput {
  const budget = { headBytes: Math.ceil(maxBytes / 2), tailBytes: Math.floor(maxBytes / 2) }
  const begin = output.readFrom(0)
  if (begin.nextOffset === output.totalBytes) {
    const text = inertText(begin.text)
    const shown = keepText(text, budget)
    return { ...shown, kept: shown.omittedBytes === 0 ? undefined : text }
  }
  const { omittedBytes } = output.ends()
  const first = inertText(withoutOpenSequence(begin.text))
  const last = inertText(output.readFrom(begin.nextOffset).text)
  const head = keepText(first, { headBytes: budget.headBytes })
  const tail = keepText(last, { tailBytes: budget.tailBytes })
  return {
    head: head.head,
    tail: tail.head + tail.tail,
    omittedBytes: omittedBytes + head.omittedBytes + tail.omittedBytes,
    kept: `${first}\n[… ${omittedBytes} bytes were not kept …]\n${last}`,
  }
}
