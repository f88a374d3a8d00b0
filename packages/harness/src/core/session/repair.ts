import { CallId, MessageId } from '@dsh/protocol'
import type {
  InboxTarget,
  SessionEvent,
  SessionEventMap,
  SessionEventType,
  SurfaceEventType,
  TurnEndReason,
  UserMessage,
} from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import { BlockAssembler } from '../llm/index.ts'
import { readTurn } from './open-turn.ts'
import type { OpenTurn } from './open-turn.ts'
import { addSources, readSources } from './sources.ts'
import type { PendingCall } from './turns.ts'

export interface CloserOptions {
  /** The log marks where the body of a tool began, by 'tool/start'. Assumed where it holds such an event. */
  readonly toolStart?: boolean
  /** How many leading events a fork inherited: their inbox is not the fork's. */
  readonly seedLength?: number
  readonly reason?: 'interrupted' | 'forked'
}

/** What a call without a result gets that did not begin. */
export const toolNotStarted = {
  error: { name: 'ToolNotStartedError', code: 'TOOL_NOT_STARTED' },
  text: 'Not started: the turn was cut off before this call ran, so it changed nothing. Call the tool again if the result is still needed.',
} as const

/** What a call without a result gets that may have done something. */
export const toolOutcomeUnknown = {
  error: { name: 'ToolOutcomeUnknownError', code: 'TOOL_OUTCOME_UNKNOWN' },
  text: 'Cut off while running: whether this call took effect is unknown. Run it again only if it just reads or is safe to repeat; otherwise look at what it did first, or ask.',
} as const

/**
 * What ends the turn that a log breaks off in; nothing for a log that does not. Pure, and the same each time: seqs go
 * on, times are that of the last event.
 *
 * In this order: the visible part of an answer that was cut off; a result for each call without one; the end of the
 * step; claimed messages that never reached the model, back in the inbox; the end of the turn. What a plugin opened
 * stays open.
 */
export function interruptedTurnClosers(
  events: readonly SessionEvent[],
  options: CloserOptions = {},
): SessionEvent[] {
  const open = readTurn(events, options.seedLength)
  const last = events.at(-1)
  if (open === undefined || last === undefined) return []
  const closers = new Closers(last)
  const { turn, step } = open
  if (step !== undefined) {
    closeAnswer(closers, open, step)
    const marked = options.toolStart === true || open.hasToolStart
    for (const call of open.calls) closeCall(closers, call, { turn, step, marked })
    closers.add('step/end', { turn, step })
  }
  const reason: TurnEndReason = { kind: options.reason ?? 'interrupted' }
  // A fork begins with an empty inbox of its own.
  if (reason.kind === 'interrupted') {
    returnClaims(closers, 'next-step', open.claimed['next-step'])
    returnClaims(closers, 'next-turn', open.claimed['next-turn'])
  }
  closers.add('turn/end', { turn, reason })
  return closers.events
}

/** Events behind the last one of a log. */
class Closers {
  readonly events: SessionEvent[] = []
  readonly #last: SessionEvent

  constructor(last: SessionEvent) {
    this.#last = last
  }

  get seq(): number {
    return this.#last.seq + 1 + this.events.length
  }

  add<Type extends Exclude<SessionEventType, SurfaceEventType>>(
    type: Type,
    data: SessionEventMap[Type],
  ): void {
    const event = { type, seq: this.seq, time: this.#last.time, data: adopt(data) }
    this.events.push(Object.freeze(event) as SessionEvent)
  }

  addNode<Type extends SurfaceEventType>(
    type: Type,
    data: SessionEventMap[Type],
    seqs?: readonly number[],
  ): void {
    const event = { type, seq: this.seq, time: this.#last.time, data: adopt(data), surfaceOp: 'append' }
    const sources = seqs === undefined ? undefined : readSources(seqs, event.seq)
    if (typeof sources === 'string') throw new TypeError(sources)
    if (sources !== undefined) addSources(event, sources)
    this.events.push(Object.freeze(event) as unknown as SessionEvent)
  }
}

function closeAnswer(closers: Closers, { turn, route, attempt }: OpenTurn, step: number): void {
  if (route === undefined || attempt.length === 0) return
  const assembler = new BlockAssembler()
  for (const { data } of attempt) assembler.push(data.chunk)
  const { kind } = assembler.finish
  const content = assembler.interruptedBlocks()
  if (kind === 'error' || kind === 'aborted' || content.length === 0) return
  const id = MessageId(`interrupted-message-${closers.seq}`)
  const { provider, model } = route
  const message = { id, role: 'assistant', content, source: { kind: 'model', provider, model } } as const
  closers.addNode(
    'assistant/message',
    { turn, step, message, interrupted: true },
    attempt.map(({ seq }) => seq),
  )
}

function closeCall(
  closers: Closers,
  { callId, callSeq, startSeq }: PendingCall,
  place: { readonly turn: number; readonly step: number; readonly marked: boolean },
): void {
  const { turn, step, marked } = place
  const mayHaveRun = marked ? startSeq !== undefined : callSeq !== undefined
  const source = mayHaveRun && marked ? startSeq : callSeq
  const { text, error } = mayHaveRun ? toolOutcomeUnknown : toolNotStarted
  const message = {
    id: MessageId(`interrupted-tool-result-${callId}-${closers.seq}`),
    role: 'user',
    content: [{ type: 'tool-result', toolCallId: callId, content: [{ type: 'text', text }], isError: true }],
    source: { kind: 'tool', callId: CallId(callId) },
  } as const
  closers.addNode('tool/result', { turn, step, message, error }, source === undefined ? undefined : [source])
}

function returnClaims(closers: Closers, target: InboxTarget, inserted: readonly UserMessage[]): void {
  if (inserted.length > 0) closers.add('agent/inbox/spliced', { target, start: 0, inserted })
}
