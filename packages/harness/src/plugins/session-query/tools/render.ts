import { cutText } from '../../../core/tools/index.ts'
import { hiddenId } from '../caller.ts'
import { searchable, textOf } from '../document.ts'
import type {
  EventRecord,
  EventSearchPage,
  EventTrace,
  EventWindow,
  LeftSession,
  Lineage,
  LineageNode,
  SearchHit,
  SessionRecord,
  SessionSearchPage,
} from '../service.ts'

const moreText = 'There are more; narrow the query or the filters.'
const outsideText = '(outside of this folder)'
const summaryBytes = 200

export function renderSessions(query: string, { sessions, nextCursor, left }: SessionSearchPage): string {
  const head = sessions.length === 0 ? `No other session holds "${query}".` : `Sessions that hold "${query}":`
  const rows = sessions.map(({ record, title, matched, hits: [best] }, at) => {
    const parts = [
      `${at + 1}. ${record.id}`,
      title === undefined ? 'no title' : `"${title}"`,
      ...factsOf(record),
      `${matched} ${matched === 1 ? 'event' : 'events'}`,
    ]
    return best === undefined ? parts.join(', ') : `${parts.join(', ')}\n   best: ${hitText(best)}`
  })
  return [head, ...rows, ...restOf(nextCursor, left)].join('\n')
}

export function renderHits(query: string, { record, hits, nextCursor, left }: EventSearchPage): string {
  const head =
    hits.length === 0
      ? `No event of session ${record.id} holds "${query}".`
      : `Events of session ${record.id} that hold "${query}":`
  const rows = hits.map((hit, at) => `${at + 1}. ${hitText(hit)}`)
  return [head, ...rows, ...restOf(nextCursor, left)].join('\n')
}

export function renderLineage(id: string, { ancestors, descendants, origin }: Lineage): string {
  const end = origin.complete
    ? []
    : [origin.unresolvedParentId === hiddenId ? outsideText : `(${origin.unresolvedParentId}, not there)`]
  const above = [...ancestors.map(recordText), ...end]
  return [
    `Session ${id}`,
    above.length === 0 ? 'Ancestors: none' : `Ancestors, nearest first:\n${indented(above)}`,
    descendants.length === 0 ? 'Forks: none' : `Forks:\n${indented(treeOf(descendants))}`,
  ].join('\n')
}

export function renderTrace(id: string, trace: EventTrace): string {
  const { event, surface, replacementChain, replacedEventSeqs, sourceEventSeqs, derivedEventSeqs } = trace
  const seqs = (list: readonly number[]): string => (list.length === 0 ? 'none' : list.join(', '))
  return [
    `Event ${event.seq} of session ${id}: ${event.type}, ${surface}`,
    `Replaced by: ${seqs(replacementChain)}`,
    `Replaces: ${seqs(replacedEventSeqs)}`,
    `Stands on: ${seqs(sourceEventSeqs)}`,
    `Cited by: ${seqs(derivedEventSeqs)}`,
  ].join('\n')
}

export function renderWindow(id: string, { target, before, after }: EventWindow): string {
  return [
    `Session ${id}`,
    ...before.map(eventText),
    `#${target.event.seq} ${target.surface}:`,
    JSON.stringify(target.event, null, 1),
    ...after.map(eventText),
  ].join('\n')
}

function hitText({ seq, type, surface, snippet }: SearchHit): string {
  return `#${seq} ${type}, ${surface}: ${snippet.text}`
}

function eventText({ event, surface }: EventRecord): string {
  const text = searchable(textOf(event) ?? '')
  const head = `#${event.seq} ${event.type}, ${surface}`
  return text === '' ? head : `${head}: ${cutText(text, summaryBytes)}`
}

function recordText(record: SessionRecord): string {
  return [record.id, ...factsOf(record)].join(', ')
}

function factsOf({ header, live, persisted }: SessionRecord): readonly string[] {
  const { createdAt, parentSession } = header
  return [
    `created ${new Date(createdAt).toISOString()}`,
    ...(parentSession === undefined ? [] : [`forked from ${parentSession}`]),
    live && persisted ? 'live and stored' : live ? 'live' : 'stored',
  ]
}

/** Without recursion: a line of forks may be as long as it likes. */
function treeOf(nodes: readonly LineageNode[]): readonly string[] {
  const lines: string[] = []
  const open = nodes.map(node => ({ node, depth: 0 })).toReversed()
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth } = next
    lines.push(`${'  '.repeat(depth)}${recordText(node.record)}`)
    open.push(...node.children.map(child => ({ node: child, depth: depth + 1 })).toReversed())
  }
  return lines
}

function indented(lines: readonly string[]): string {
  return lines.map(line => `  ${line}`).join('\n')
}

function restOf(nextCursor: string | undefined, left: readonly LeftSession[]): readonly string[] {
  return [
    ...(nextCursor === undefined ? [] : [moreText]),
    ...left.map(({ id, reason }) => `Not searched: ${id}: ${reason}`),
  ]
}
