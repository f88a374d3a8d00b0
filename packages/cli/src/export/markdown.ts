import { endOf } from '../lines.ts'
import { inert, oneLine } from '../text.ts'
import { factsOf } from '../transcript.ts'
import type { Entry, ToolEntry } from '../transcript.ts'
import type { SessionDocument } from './document.ts'

/** Piece by piece, since all of it may be more than a string should hold. */
export function* markdownOf({ title, facts, entries }: SessionDocument): Generator<string> {
  yield `# ${escaped(title)}\n\n${facts.map(escaped).join(' · ')}\n`
  for (const entry of entries) for (const block of blocksOf(entry)) yield `\n${block}\n`
}

function blocksOf(entry: Entry): string[] {
  switch (entry.kind) {
    case 'prompt':
      return ['## Prompt', fenced(inert(entry.text), 'text')]
    case 'answer':
      return [inert(entry.text.trim())]
    case 'tool':
      return toolBlocks(entry)
    case 'retry':
      return [`*${escaped(`${entry.failure.code}: ${oneLine(entry.failure.message)}, asked again`)}*`]
    case 'notice':
      return [`*${escaped(oneLine(entry.text))}*`]
    case 'end':
      return [`**${escaped(endOf(entry.reason))}**`]
  }
}

function toolBlocks(entry: ToolEntry): string[] {
  const { name, subject, output, changed } = entry
  const touched = changed.filter(path => path !== subject).map(path => ` → ${code(path)}`)
  const about = subject === '' ? '' : ` ${code(oneLine(subject))}`
  const head = `**${escaped(name)}**${about} (${escaped(factsOf(entry))})${touched.join('')}`
  return output.trim() === '' ? [head] : [head, fenced(inert(output.trimEnd()), '')]
}

/** In a fence that is longer than any run of backticks in it. */
function fenced(text: string, language: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1))
  return `${fence}${language}\n${text}\n${fence}`
}

function code(text: string): string {
  const quote = '`'.repeat(longestRun(text) + 1)
  const room = text.startsWith('`') || text.endsWith('`') ? ' ' : ''
  return `${quote}${room}${inert(text)}${room}${quote}`
}

function longestRun(text: string): number {
  return Math.max(0, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length))
}

/** Plain text that stays plain: nothing in it becomes a heading, a link or HTML. */
function escaped(text: string): string {
  return inert(text).replace(/[\\`*_[\]<>#&|~]/g, '\\$&')
}
