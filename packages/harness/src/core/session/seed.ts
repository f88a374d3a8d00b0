import type { SessionEvent } from '@dsh/protocol'
import { adopt, freezeJson, isFields, isPositive, messageOf } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import { plainDelta } from './chunk-row.ts'
import { Entries } from './entries.ts'
import { SessionError } from './errors.ts'
import type { EventTypes } from './event-types.ts'
import { hasLazySources } from './sources.ts'
import { isReplacementSurfaceEvent, isSurfaceType, readOp, SurfaceManager } from './surface.ts'

/** An event whose data the plugin it belongs to refuses. */
export interface FlaggedEvent {
  readonly seq: number
  readonly type: string
  readonly plugin: string
  readonly reason: string
}

/** An event that may not be skipped and that nobody here knows: its type, or that member of it. */
export interface UnknownEvent {
  readonly seq: number
  readonly type: string
  readonly member?: string
}

export interface Seed {
  readonly entries: Entries
  readonly surface: SurfaceManager
  readonly flagged: readonly FlaggedEvent[]
  readonly unknown: UnknownEvent | undefined
}

export interface SeedOptions {
  readonly types: EventTypes
  /** The events stay the caller's; else they are frozen where they are. */
  readonly copy: boolean
}

/** Checks every event as strictly as `append` does. Throws for the first that is not right, with its seq. */
export function readSeed(events: readonly SessionEvent[], { types, copy }: SeedOptions): Seed {
  const entries = new Entries()
  const surface = new SurfaceManager()
  const flagged: FlaggedEvent[] = []
  let unknown: UnknownEvent | undefined
  for (let seq = 0; seq < events.length; seq++) {
    const given = events[seq]
    if (given !== undefined && !copy && isPlainChunk(given, seq)) {
      surface.append(given)
      entries.pushChunk(given)
      continue
    }
    const event = readEnvelope(given, seq, copy)
    const flag = checkData(event, types)
    if (flag !== undefined) flagged.push(flag)
    unknown ??= whatIsUnknown(event, types)
    surface.append(event)
    if (isPlainChunk(event, seq)) entries.pushChunk(event)
    else entries.push(event)
  }
  return { entries, surface, flagged, unknown }
}

/** Whether there is nothing in the event that a run of chunks would not keep, and nothing wrong with it. */
function isPlainChunk(event: SessionEvent, seq: number): event is SessionEvent<'assistant/chunk'> {
  if (event.type !== 'assistant/chunk' || plainDelta(event) === undefined) return false
  const { turn, step } = event.data
  return event.seq === seq && Number.isSafeInteger(event.time) && isPositive(turn) && isPositive(step)
}

/**
 * What is wrong with an event that stands at `seq`, looked at alone: what it replaces on the surface is not known.
 * Freezes it; undefined where it is right.
 */
export function problemOfEvent(given: SessionEvent, seq: number, types: EventTypes): string | undefined {
  try {
    const event = readEnvelope(given, seq, false)
    checkData(event, types)
    const { type, surfaceOp, sourceEventSeqs } = event
    if (isReplacementSurfaceEvent(event)) readOp(surfaceOp)
    else if (isSurfaceType(type) || surfaceOp !== undefined || sourceEventSeqs !== undefined)
      new SurfaceManager([event], seq)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** A later version may have written the event: then what is new in it is kept and nothing may be added to the log. */
function whatIsUnknown(event: SessionEvent, types: EventTypes): UnknownEvent | undefined {
  const { seq, type, ignorable } = event
  if (ignorable === true) return undefined
  if (!types.has(type)) return { seq, type }
  const member = unknownMember(event)
  return member === undefined ? undefined : { seq, type, member }
}

function unknownMember(event: object): string | undefined {
  for (const key in event) if (!isEnvelopeKey(key)) return key
  return undefined
}

function isEnvelopeKey(key: string): boolean {
  switch (key) {
    case 'type':
    case 'seq':
    case 'time':
    case 'data':
    case 'ignorable':
    case 'surfaceOp':
    case 'sourceEventSeqs':
      return true
    default:
      return false
  }
}

function readEnvelope(given: unknown, seq: number, copy: boolean): SessionEvent {
  let event: unknown
  try {
    if (copy) event = adopt(given, 'it')
    else event = hasLazySources(given as object) ? given : freezeJson(given, 'it')
  } catch (cause) {
    throw invalid(seq, messageOf(cause), cause)
  }
  if (!isFields(event)) throw invalid(seq, 'it is no record')
  const member = copy ? unknownMember(event) : undefined
  const problem = member === undefined ? problemOfEnvelope(event, seq) : `it has an unknown key "${member}"`
  if (problem !== undefined) throw invalid(seq, problem)
  return event as unknown as SessionEvent
}

function problemOfEnvelope(event: Fields, seq: number): string | undefined {
  const { type, time, data, ignorable } = event
  if (typeof type !== 'string') return 'its type is no string'
  if (event['seq'] !== seq) return `its seq is ${String(event['seq'])}`
  if (!Number.isSafeInteger(time)) return 'its time is no integer'
  if (data === undefined) return 'it has no data'
  return ignorable === undefined || ignorable === true ? undefined : 'ignorable is not true'
}

/** Data of the core must be right; what a plugin refuses is only flagged, so that it alone misses the event. */
function checkData(event: SessionEvent, types: EventTypes): FlaggedEvent | undefined {
  const { seq, type, data } = event
  try {
    types.check(type, data)
    return undefined
  } catch (error) {
    const plugin = types.ownerOf(type)
    const reason = messageOf(error)
    if (plugin === undefined) throw invalid(seq, reason, error)
    return { seq, type, plugin, reason }
  }
}

function invalid(seq: number, problem: string, cause?: unknown): SessionError {
  return new SessionError('INVALID_EVENT', `event ${seq}: ${problem}`, { seq, cause })
}
