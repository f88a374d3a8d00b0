import type { CallId, SessionEvent } from '@dsh/protocol'
import { toolNotStarted, toolOutcomeUnknown } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import type {} from '../approval/events.ts'
import type {} from '../fs/events.ts'

/** A call that had no result when its turn was cut off. */
export interface UnfinishedCall {
  readonly callId: CallId
  readonly name: string
  /** As the model wrote them. */
  readonly arguments: string
  /** Of its 'tool/result', which says so. */
  readonly seq: number
  readonly hasStarted: boolean
  /** Epoch ms of its 'tool/start'. */
  readonly startedAt?: number
  /** A person had been asked and had not answered. */
  readonly wasAsked: boolean
  /** The last change of a file that it announced. */
  readonly change?: SessionEvent<'fs/change'>['data']
}

/** A turn that the end of the program cut off. */
export interface CutOff {
  readonly turn: number
  /** Of its 'turn/end'. */
  readonly seq: number
  /** Epoch ms of the last thing it did. */
  readonly time: number
  readonly calls: readonly UnfinishedCall[]
}

/** Of the message that tells the model; what came before one has been told. */
export const noticeSource = 'recovery'

/** The turns at the end of the log that were cut off and of which the model has not been told, in order. */
export function untoldCutOffs(session: Session): readonly CutOff[] {
  const found: CutOff[] = []
  let end: SessionEvent<'turn/end'> | undefined
  for (let seq = session.length - 1; seq >= 0; seq--) {
    const event = session.at(seq)
    if (event === undefined || isNotice(event)) break
    if (event.type === 'turn/end') {
      if (event.data.reason.kind !== 'interrupted') break
      end = event
    }
    if (event.type === 'turn/start' && end !== undefined) {
      found.unshift(readTurn(session, seq, end))
      end = undefined
    }
  }
  return found
}

export function isNotice({ type, data }: SessionEvent): boolean {
  if (type !== 'user/message') return false
  const { source } = data
  return source.kind === 'plugin' && source.plugin === noticeSource
}

function readTurn(session: Session, from: number, { data, seq, time }: SessionEvent<'turn/end'>): CutOff {
  const reader = new CallReader()
  for (let at = from; at < seq; at++) {
    const event = session.at(at)
    if (event !== undefined) reader.read(event)
  }
  return { turn: data.turn, seq, time, calls: reader.unfinished }
}

type Seen = { -readonly [Key in keyof UnfinishedCall]?: UnfinishedCall[Key] }

class CallReader {
  readonly unfinished: UnfinishedCall[] = []
  readonly #calls = new Map<CallId, Seen>()
  /** Call ids of open questions, by question. */
  readonly #asked = new Map<string, CallId>()

  read(event: SessionEvent): void {
    switch (event.type) {
      case 'assistant/message':
        // A call may be known from here alone.
        for (const block of event.data.message.content)
          if (block.type === 'tool-call')
            this.#calls.set(block.id, { name: block.name, arguments: block.arguments })
        return
      case 'tool/call': {
        const { callId, name, arguments: text } = event.data
        this.#calls.set(callId, { name, arguments: text })
        return
      }
      case 'tool/start':
        this.#of(event.data.callId).startedAt = event.time
        return
      case 'fs/change':
        this.#of(event.data.callId).change = event.data
        return
      case 'approval/asked':
        if (event.data.callId !== undefined) this.#asked.set(event.data.id, event.data.callId)
        return
      case 'approval/decided':
        this.#asked.delete(event.data.id)
        return
      case 'tool/result':
        this.#result(event)
    }
  }

  #of(callId: CallId): Seen {
    const call = this.#calls.get(callId) ?? {}
    this.#calls.set(callId, call)
    return call
  }

  #result({ data, seq }: SessionEvent<'tool/result'>): void {
    const { callId } = data.message.source
    const { name = 'tool', arguments: text = '', startedAt, change } = this.#of(callId)
    this.#calls.delete(callId)
    const code = data.error?.code
    if (code !== toolNotStarted.error.code && code !== toolOutcomeUnknown.error.code) return
    this.unfinished.push({
      callId,
      name,
      arguments: text,
      seq,
      hasStarted: code === toolOutcomeUnknown.error.code,
      wasAsked: [...this.#asked.values()].includes(callId),
      ...(startedAt === undefined ? {} : { startedAt }),
      ...(change === undefined ? {} : { change }),
    })
  }
}
