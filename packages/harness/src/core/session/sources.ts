import { isFields } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

/** Seqs `from`…`to`, both included. */
export interface SeqRange {
  readonly from: number
  readonly to: number
}

export type Sources = readonly number[] | SeqRange

/** Shorter lists are smaller as lists. */
const shortestRange = 8

export function isRange(sources: Sources): sources is SeqRange {
  return !Array.isArray(sources)
}

/** Reads sources once; a run of seqs becomes a range. Gives the problem where they are not earlier events. */
export function readSources(given: unknown, seq: number): Sources | string {
  if (isFields(given)) return readRange(given, seq)
  if (!Array.isArray(given)) return 'sourceEventSeqs is no list'
  const { length } = given
  const first: unknown = given[0]
  if (length >= shortestRange && isEarlier(first, seq)) {
    const range = { from: first, to: first + length - 1 }
    if (range.to < seq && isRun(given, first)) return range
  }
  return problemOfSources(given, seq) ?? Object.freeze(given.slice() as number[])
}

function readRange({ from, to }: Fields, seq: number): Sources | string {
  if (!isEarlier(from, seq) || !isEarlier(to, seq) || to < from)
    return 'sourceEventSeqs is no range of earlier events'
  const length = to - from + 1
  return length >= shortestRange ? { from, to } : Object.freeze(listOf({ from, to }))
}

function listOf({ from, to }: SeqRange): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

export function problemOfSources(sources: readonly unknown[], seq: number): string | undefined {
  let ascending = true
  let last = -1
  for (const source of sources) {
    if (!isEarlier(source, seq)) return `sourceEventSeqs names ${String(source)}, which is no earlier event`
    if (source <= last) ascending = false
    last = source
  }
  const unique = ascending || new Set(sources).size === sources.length
  return unique ? undefined : 'sourceEventSeqs names an event twice'
}

export function includesSeq(sources: Sources, seq: number): boolean {
  return isRange(sources) ? sources.from <= seq && seq <= sources.to : sources.includes(seq)
}

/** Adds `sourceEventSeqs` to an event that is not frozen yet; a range is made a list when it is read. */
export function addSources(event: object, sources: Sources): void {
  if (!isRange(sources)) {
    Object.assign(event, { sourceEventSeqs: sources })
    return
  }
  let list: WeakRef<readonly number[]> | undefined
  const get = (): readonly number[] => {
    const known = list?.deref()
    if (known !== undefined) return known
    const seqs = Object.freeze(listOf(sources))
    list = new WeakRef(seqs)
    return seqs
  }
  Object.defineProperty(event, 'sourceEventSeqs', { enumerable: true, get })
  lazy.add(event)
}

/** Whether a session made the event and its list of sources is made when read. */
export function hasLazySources(event: object): boolean {
  return lazy.has(event)
}

// One for all copies of this module: a store may bring its own, and hands over what it closed a turn with.
const key = Symbol.for('dsh.session.lazy-sources')
const shared = globalThis as { [key]?: WeakSet<object> }
const lazy = (shared[key] ??= new WeakSet<object>())

function isEarlier(value: unknown, seq: number): value is number {
  return (
    Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < seq && !Object.is(value, -0)
  )
}

function isRun(list: readonly unknown[], from: number): boolean {
  for (let index = 0; index < list.length; index++) if (list[index] !== from + index) return false
  return true
}
