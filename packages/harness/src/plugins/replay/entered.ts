import type { UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import type { RecordedMessage } from './recording.ts'

/**
 * The messages of a step as a recording has them: those that nobody here said are put in where they stood. What a person
 * said is an input and is there already; whatever is said here and was not recorded stays, and shows as a difference.
 *
 * The runtime context is an input too: it tells of the machine and the day, not of the program.
 */
export function fillEntered(
  said: readonly UserMessage[],
  recorded: readonly RecordedMessage[],
): readonly UserMessage[] {
  const waiting = said.filter(message => !isSnapshot(message))
  const filled = recorded.flatMap(message => {
    const index = waiting.findIndex(other => isSameVoice(other, message))
    if (index >= 0) return waiting.splice(index, 1)
    return message.source.kind === 'user' ? [] : [createUserMessage(message)]
  })
  return [...filled, ...waiting]
}

function isSnapshot({ source }: UserMessage): boolean {
  return source.kind === 'plugin' && source.form === 'snapshot'
}

function isSameVoice({ source: a }: UserMessage, { source: b }: RecordedMessage): boolean {
  if (a.kind !== b.kind) return false
  return a.kind !== 'plugin' || b.kind !== 'plugin' || (a.plugin === b.plugin && a.form === b.form)
}
