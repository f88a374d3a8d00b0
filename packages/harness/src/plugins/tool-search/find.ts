import type { ToolSchema } from '@dsh/protocol'

type Named = Pick<ToolSchema, 'name' | 'description'>

const nameWeight = 3

/** The tools that `query` may mean, the best first; equal ones in the order of `tools`. */
export function findTools<Tool extends Named>(tools: readonly Tool[], query: string): Tool[] {
  const words = wordsOf(query)
  return tools
    .map(tool => ({ tool, score: scoreOf(tool, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ tool }) => tool)
}

/** How many of the words the tool has, those of its name above all; the whole name wins over everything. */
function scoreOf({ name, description }: Named, words: readonly string[]): number {
  const own = name.toLowerCase()
  const about = description.toLowerCase()
  let score = 0
  for (const word of words) {
    if (own === word) return Number.MAX_SAFE_INTEGER
    if (own.includes(word)) score += nameWeight
    else if (about.includes(stemOf(word))) score += 1
  }
  return score
}

function wordsOf(query: string): string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}_-]+/gu) ?? []
  return [...new Set(words)].filter(word => !fillers.has(word))
}

/** "searches", "searching" and "searched" are found in "search". */
function stemOf(word: string): string {
  return word.length > 5 ? word.replace(/(?:es|s|ing|ed)$/, '') : word
}

const fillers = new Set([
  'a',
  'an',
  'the',
  'to',
  'of',
  'for',
  'in',
  'on',
  'and',
  'or',
  'with',
  'tool',
  'tools',
])
