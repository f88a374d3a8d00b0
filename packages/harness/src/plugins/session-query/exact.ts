import type { SessionEvent, SessionId } from '@dsh/protocol'
import { isSurfaceEvent, SurfaceManager } from '../../core/session/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { noPrompts, queueAfter } from './document.ts'
import { SessionQueryError } from './errors.ts'
import { checkFilters, eventFilter } from './filter.ts'
import type {
  EventFilter,
  EventPlace,
  EventRecord,
  EventTrace,
  EventWindow,
  SessionLog,
  TitleSnapshot,
} from './service.ts'
import { titleIn, titleOfPrompt } from './summary.ts'

/** Every event with its place in the model's view. Throws INVALID_SURFACE where that does not follow from the log. */
export function recordsOf({ record, events }: SessionLog): readonly EventRecord[] {
  const nodes = new Set(surfaceOf(record.id, events).nodes)
  return events.map(event => ({ event, surface: placeOf(event, nodes) }))
}

export function surfaceOf(
  id: SessionId,
  events: readonly SessionEvent[],
): { readonly nodes: readonly number[] } {
  try {
    return new SurfaceManager(events).surface
  } catch (cause) {
    throw new SessionQueryError(
      'SESSION_QUERY_INVALID_SURFACE',
      `the view of session "${id}" does not follow from its log: ${messageOf(cause)}`,
      { cause },
    )
  }
}

export function filtered(log: SessionLog, filters: readonly EventFilter[]): readonly EventRecord[] {
  checkFilters(filters)
  const fits = eventFilter(filters)
  let queued = noPrompts
  return recordsOf(log).filter(record => {
    const fitting = fits(record, queued)
    queued = queueAfter(queued, record.event)
    return fitting
  })
}

/** The latest given title, else the first prompt of a person. */
export function titleOf(events: readonly SessionEvent[]): TitleSnapshot | undefined {
  const given = events.findLast(event => titleIn(event) !== undefined)
  const event = given ?? events.find(each => titleOfPrompt(each) !== undefined)
  if (event === undefined) return undefined
  const title = titleIn(event) ?? titleOfPrompt(event) ?? ''
  return { title, eventSeq: event.seq, updatedAt: event.time }
}

/** Throws EVENT_NOT_FOUND. */
export function traceOf(log: SessionLog, { sessionId, seq }: EventPlace): EventTrace {
  const { events } = log
  const target = events[seq]
  if (target === undefined) throw noEvent({ sessionId, seq })
  const nodes: number[] = []
  const replacedBy = new Map<number, number>()
  let replaced: readonly number[] = []
  for (const { seq: at, surfaceOp } of events) {
    if (surfaceOp === undefined) continue
    if (surfaceOp === 'append') {
      nodes.push(at)
      continue
    }
    const from = nodes.indexOf(surfaceOp.start)
    const hidden = nodes.splice(from, nodes.indexOf(surfaceOp.end) - from + 1, at)
    for (const each of hidden) replacedBy.set(each, at)
    if (at === seq) replaced = hidden
  }
  const chain: number[] = []
  for (let at = replacedBy.get(seq); at !== undefined; at = replacedBy.get(at)) chain.push(at)
  const [first] = chain
  return {
    event: target,
    surface: placeOf(target, new Set(nodes)),
    ...(first === undefined ? {} : { replacedBy: first }),
    replacementChain: chain,
    replacedEventSeqs: replaced,
    sourceEventSeqs: target.sourceEventSeqs ?? [],
    derivedEventSeqs: events.flatMap(event =>
      event.sourceEventSeqs?.includes(seq) === true ? [event.seq] : [],
    ),
  }
}

export interface WindowRequest extends EventPlace {
  readonly before?: number
  readonly after?: number
}

/** Throws INVALID_WINDOW and EVENT_NOT_FOUND. */
export function windowOf(log: SessionLog, request: WindowRequest, most: number): EventWindow {
  const { seq, before = 0, after = 0 } = request
  for (const [name, count] of Object.entries({ before, after }))
    if (!Number.isSafeInteger(count) || count < 0 || count > most)
      throw new SessionQueryError(
        'SESSION_QUERY_INVALID_WINDOW',
        `${name} is ${count}, expected 0 to ${most} events`,
      )
  const records = recordsOf(log)
  const target = records[seq]
  if (target === undefined) throw noEvent(request)
  return {
    target,
    before: records.slice(Math.max(0, seq - before), seq),
    after: records.slice(seq + 1, seq + 1 + after),
  }
}

function placeOf(event: SessionEvent, nodes: ReadonlySet<number>): EventRecord['surface'] {
  if (!isSurfaceEvent(event)) return 'log-only'
  return nodes.has(event.seq) ? 'current' : 'shadowed'
}

function noEvent({ sessionId, seq }: EventPlace): SessionQueryError {
  return new SessionQueryError(
    'SESSION_QUERY_EVENT_NOT_FOUND',
    `session "${sessionId}" has no event ${String(seq)}`,
  )
}
