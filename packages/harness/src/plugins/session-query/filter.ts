import { literal } from '../../kernel/index.ts'
import { SessionQueryError } from './errors.ts'
import { textOf } from './document.ts'
import type { QueuedPrompts } from './document.ts'
import type { EventFilter, EventRecord, SessionFilter, SessionRecord } from './service.ts'

/** Of all clauses of one question; lists may be long, clauses need not. */
const mostClauses = 14
const mostValues = 32_766

const surfaces: ReadonlySet<string> = new Set(['current', 'shadowed', 'log-only'])
const availabilities: ReadonlySet<string> = new Set(['live', 'persisted'])

/** Throws INVALID_FILTER for what no question can mean. */
export function checkFilters(filters: readonly (SessionFilter | EventFilter)[], most = mostClauses): void {
  if (filters.length > most) throw invalid(`${filters.length} filters, at most ${most} are possible`)
  for (const filter of filters) {
    const problem = problemOf(filter)
    if (problem !== undefined) throw invalid(`filter "${String(filter.kind)}": ${problem}`)
  }
}

export function fitsSession(record: SessionRecord, filters: readonly SessionFilter[]): boolean {
  return filters.every(filter => {
    const { id, header, live, persisted } = record
    switch (filter.kind) {
      case 'id':
        return filter.values.includes(id)
      case 'cwd':
        return filter.values.includes(header.cwd ?? null)
      case 'created-at':
        return isWithin(header.createdAt, filter)
      case 'parent':
        return filter.values.includes(header.parentSession ?? null)
      case 'availability':
        return filter.values.some(value => (value === 'live' ? live : persisted))
    }
  })
}

/** Whether an event fits; `queued` are the prompts that wait before it. */
export function eventFilter(
  filters: readonly EventFilter[],
): (record: EventRecord, queued: QueuedPrompts) => boolean {
  const checks = filters.map(filter => {
    if (filter.kind !== 'text') return (record: EventRecord): boolean => fitsEvent(record, filter)
    const pattern = flexible(filter.value)
    return ({ event }: EventRecord, queued: QueuedPrompts): boolean => {
      const text = textOf(event, queued)
      return text !== undefined && pattern.test(text)
    }
  })
  return (record, queued) => checks.every(check => check(record, queued))
}

function fitsEvent({ event, surface }: EventRecord, filter: Exclude<EventFilter, { kind: 'text' }>): boolean {
  switch (filter.kind) {
    case 'seq':
      return isWithin(event.seq, filter)
    case 'time':
      return isWithin(event.time, filter)
    case 'type':
      return filter.values.includes(event.type)
    case 'surface':
      return filter.values.includes(surface)
  }
}

function flexible(value: string): RegExp {
  const words = value.trim().split(/\s+/)
  return new RegExp(words.map(literal).join('\\s+'), 'iu')
}

function isWithin(value: number, { from, to }: { readonly from?: number; readonly to?: number }): boolean {
  return (from === undefined || value >= from) && (to === undefined || value <= to)
}

function problemOf(filter: SessionFilter | EventFilter): string | undefined {
  switch (filter.kind) {
    case 'created-at':
    case 'seq':
    case 'time':
      return problemOfRange(filter)
    case 'text':
      return filter.value.trim() === '' ? 'the text is empty' : undefined
    case 'surface':
      return problemOfValues(filter.values, surfaces)
    case 'availability':
      return problemOfValues(filter.values, availabilities)
    case 'id':
    case 'cwd':
    case 'parent':
    case 'type':
      return problemOfValues(filter.values)
    default:
      return 'there is no such filter'
  }
}

function problemOfRange({ from, to }: { readonly from?: number; readonly to?: number }): string | undefined {
  for (const end of [from, to])
    if (end !== undefined && !Number.isSafeInteger(end)) return `${end} is no whole number`
  if (from !== undefined && to !== undefined && from > to) return `${from} is behind ${to}`
  return undefined
}

function problemOfValues(values: readonly unknown[], known?: ReadonlySet<string>): string | undefined {
  if (values.length > mostValues) return `${values.length} values, at most ${mostValues} are possible`
  if (known === undefined) return undefined
  const odd = values.map(String).find(value => !known.has(value))
  return odd === undefined ? undefined : `"${odd}" is none of ${[...known].join(', ')}`
}

function invalid(message: string): SessionQueryError {
  return new SessionQueryError('SESSION_QUERY_INVALID_FILTER', message)
}
