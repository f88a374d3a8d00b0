import type { SessionEvent } from '@dsh/protocol'
import { linesOf } from '../lines.ts'
import { styleOf } from '../style.ts'
import { inert } from '../text.ts'
import type { Io } from '../io.ts'
import type { Entry } from '../transcript.ts'

/** Shows a run while it goes on. */
export interface Feed {
  /** `entry` is what the event adds for a person. */
  show(event: SessionEvent, entry: Entry | undefined): void
  /** The model's answer when the run is over; nothing that was shown already is shown again. */
  answer(text: string): void
}

/** Every event of the session as it is, one line each. */
export function jsonFeed(io: Io): Feed {
  return { show: event => io.out.line(JSON.stringify(event)), answer: () => {} }
}

/**
 * Steps on standard error, the answer on standard output: as it comes where that is a terminal, else whole at the end.
 * `holdAnswer` keeps it back in any case.
 */
export function humanFeed(io: Io, options: { readonly holdAnswer: boolean }): Feed {
  const style = styleOf('err', io)
  const streams = io.out.isTerminal && !options.holdAnswer
  let streamed = ''
  const endLine = (): void => {
    if (streamed !== '' && !streamed.endsWith('\n')) io.out.write('\n')
    streamed = ''
  }
  return {
    show(event, entry) {
      if (streams && event.type === 'assistant/chunk') {
        const { chunk } = event.data
        if (chunk.type === 'text-delta') {
          streamed += chunk.text
          io.out.write(inert(chunk.text))
        }
        if (chunk.type === 'finish') endLine()
        return
      }
      if (entry === undefined || entry.kind === 'prompt' || entry.kind === 'end') return
      // What was said beside calls is part of the work; the last word is the answer.
      if (entry.kind === 'answer' && (streams || entry.isLast)) return
      io.err.write(linesOf(entry, style))
    },
    answer(text) {
      if (streams) return endLine()
      if (text === '') return
      const shown = io.out.isTerminal ? inert(text) : text
      io.out.write(shown.endsWith('\n') ? shown : `${shown}\n`)
    },
  }
}
