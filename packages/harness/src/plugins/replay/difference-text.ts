import { firstDifference, harmlessChanges } from '../time-travel/index.ts'
import type { RequestParts } from '../time-travel/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { cutText } from '../../core/tools/index.ts'
import type { CanonicalRequest } from './portable.ts'
import type { RecordingDifference } from './run-recording.ts'

const shownBytes = 300

/** What is different, in lines for a person: what was recorded with a minus, what came with a plus. */
export function differenceLines({ place, expected, actual, failure }: RecordingDifference): string[] {
  if (actual === undefined) {
    const why = failure === undefined ? [] : [`  ${messageOf(failure)}`]
    return [`request ${place} was recorded and is not made any more`, ...why]
  }
  if (expected === undefined) {
    const { messages } = actual
    const last = JSON.stringify(messages.at(-1)?.content ?? null)
    return [`request ${place} is made, and the recording has no more`, `+ ${cutText(last, shownBytes)}`]
  }
  const found = firstDifference(partsOf(expected), partsOf(actual))
  const config = harmlessChanges(expected.header, actual.header)
  if (found === undefined) return [`request ${place} has another config: ${config.join(', ')}`]
  const { part, index, before, after } = found
  const where = part === 'messages' ? `message ${index}` : part
  const side = (sign: string, text: string | undefined): string[] =>
    text === undefined ? [] : [`${sign} ${cutText(text, shownBytes)}`]
  return [`request ${place} is another one from its ${where} on`, ...side('-', before), ...side('+', after)]
}

function partsOf({ header, messages }: CanonicalRequest): RequestParts {
  const { config, system, tools } = header
  return {
    ...config,
    messages,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
  }
}
