import type { UserMessage } from '@dsh/protocol'
import { offerTools } from '../prompt/index.ts'
import type { LoopHost } from './host.ts'

/** Offers the deferred tools that a person names in `messages`. */
export function offerNamedTools({ ctx, agent, session }: LoopHost, messages: readonly UserMessage[]): void {
  const deferred = ctx.tools.deferred(agent)
  if (deferred.length === 0) return
  const words = new Set<string>()
  for (const { source, content } of messages) {
    if (source.kind !== 'user') continue
    for (const block of content) if (block.type === 'text') addWords(block.text, words)
  }
  offerTools(
    session,
    deferred.map(({ name }) => name).filter(name => words.has(name)),
  )
}

/** A word that any sentence may hold names a tool only as code. */
function addWords(text: string, words: Set<string>): void {
  for (const [word] of text.matchAll(/(?<![\w-])[\w-]+(?![\w-])/g)) if (/[\d_-]/.test(word)) words.add(word)
  for (const [, word = ''] of text.matchAll(/`([\w-]+)`/g)) words.add(word)
}
