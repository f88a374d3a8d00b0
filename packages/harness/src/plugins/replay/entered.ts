import type { UserMessage } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'

/**
 * The messages of a step as a recording has them: those that nobody here said are put in where they stood. What a person
 * said is an input and is there already; whatever is said here and was not recorded stays, and shows as a difference.
 */
export function fillEntered(
  said: readonly UserMessage[],
  recorded: readonly UserMessage[],
  options: { readonly standIns: boolean },
): readonly UserMessage[] {
  const waiting = [...said]
  const isSnapshotRecorded = recorded.some(isSnapshot)
  const filled = recorded.flatMap(message => {
    const index = waiting.findIndex(other => isSameVoice(other, message))
    if (index >= 0) return waiting.splice(index, 1)
    return message.source.kind === 'user' ? [] : [createUserMessage(message)]
  })
  // The loop tells of the runtime context that it finds; where it is a stand-in, there is none to be found.
  const isForeign = (message: UserMessage): boolean =>
    options.standIns && !isSnapshotRecorded && isSnapshot(message)
  return [...filled, ...waiting.filter(message => !isForeign(message))]
}

function isSnapshot({ source }: UserMessage): boolean {
  return source.kind === 'plugin' && source.form === 'snapshot'
}

function isSameVoice({ source: a }: UserMessage, { source: b }: UserMessage): boolean {
  if (a.kind !== b.kind) return false
  return a.kind !== 'plugin' || b.kind !== 'plugin' || (a.plugin === b.plugin && a.form === b.form)
}
