import type { JsonValue, SessionEvent } from '@dsh/protocol'
import type { SessionView } from '../../core/session/index.ts'
import { parseJson } from '../../kernel/index.ts'
import { ReplayError } from './errors.ts'
import type { RecordedMessage } from './recording.ts'
import { resultOf } from './tool-result.ts'
import type { ToolResult } from './tool-result.ts'

/** What a person said in a session, and how the calls of its model ended, by turn. */
export interface ReplayPlan {
  /** So many events come before the first of the turns. */
  readonly boundary: number
  readonly turns: readonly PlannedTurn[]
}

export interface PlannedTurn {
  /** As the session counts. */
  readonly turn: number
  /** The event with which it began to say something. */
  readonly firstSeq: number
  readonly inputs: readonly { readonly step: number; readonly message: RecordedMessage }[]
  /** In the order in which they began. */
  readonly calls: readonly PlannedCall[]
}

export interface PlannedCall {
  readonly seq: number
  readonly turn: number
  readonly step: number
  readonly name: string
  readonly arguments: JsonValue
  /** Undefined where the call was cut off, so that nobody knows what it gives. */
  readonly result: ToolResult | undefined
}

/** The calls of a model that nothing came of. */
const cutOff: ReadonlySet<string> = new Set([
  'ABORTED',
  'ABORTED_BEFORE_DISPATCH',
  'TOOL_NOT_STARTED',
  'TOOL_OUTCOME_UNKNOWN',
])

/**
 * The turns from the one of event `from` on, of all where it is undefined. One pass. Throws NOTHING_TO_REPLAY where no
 * person says anything in them.
 */
export function planReplay(session: SessionView, from: number | undefined): ReplayPlan {
  const reader = new PlanReader()
  for (const event of session.since(0)) reader.read(event)
  const all = reader.turns
  const first = from === undefined ? 0 : all.findLastIndex(({ begin }) => begin <= from)
  const turns = all.slice(Math.max(0, first)).filter(({ inputs }) => inputs.length > 0)
  const [begun] = turns
  if (begun !== undefined) return { boundary: begun.begin, turns }
  const where = from === undefined ? '' : ` from event ${from} on`
  throw new ReplayError('NOTHING_TO_REPLAY', `no person says anything in session "${session.id}"${where}`)
}

interface OpenTurn extends PlannedTurn {
  /** Seq of the event behind the end of the turn before: what waited for this turn is part of it. */
  readonly begin: number
  firstSeq: number
  readonly inputs: { readonly step: number; readonly message: RecordedMessage }[]
  readonly calls: (PlannedCall & { result: ToolResult | undefined })[]
}

class PlanReader {
  readonly turns: OpenTurn[] = []
  #step = 0
  #end = 0
  /** Calls without a result, by id. */
  readonly #waiting = new Map<string, OpenTurn['calls'][number]>()

  read(event: SessionEvent): void {
    const turn = this.turns.at(-1)
    switch (event.type) {
      case 'turn/start':
        this.turns.push({
          turn: event.data.turn,
          begin: this.#end,
          firstSeq: event.seq,
          inputs: [],
          calls: [],
        })
        return
      case 'step/start':
        this.#step = event.data.step
        return
      case 'user/message':
        if (event.surfaceOp === 'append' && event.data.source.kind === 'user' && turn !== undefined)
          this.#say(event, turn)
        return
      case 'tool/call':
        if (turn !== undefined) this.#call(event, turn)
        return
      case 'tool/result':
        if (event.surfaceOp === 'append') this.#answer(event)
        return
      case 'turn/end':
        this.#end = event.seq + 1
        this.#waiting.clear()
    }
  }

  #say({ seq, data: { content, source } }: SessionEvent<'user/message'>, turn: OpenTurn): void {
    if (turn.inputs.length === 0) turn.firstSeq = seq
    turn.inputs.push({ step: this.#step, message: { content, source } })
  }

  #call({ seq, data }: SessionEvent<'tool/call'>, open: OpenTurn): void {
    const { turn, step, callId, name, arguments: text } = data
    const call = { seq, turn, step, name, arguments: argumentsOf(text), result: undefined }
    open.calls.push(call)
    this.#waiting.set(callId, call)
  }

  #answer({ data }: SessionEvent<'tool/result'>): void {
    const [{ toolCallId }] = data.message.content
    const call = this.#waiting.get(toolCallId)
    this.#waiting.delete(toolCallId)
    if (call === undefined || (data.error !== undefined && cutOff.has(data.error.code))) return
    call.result = resultOf(data)
  }
}

/** As the loop reads them: text that is no JSON stands for itself. */
function argumentsOf(text: string): JsonValue {
  if (text === '') return {}
  const parsed = parseJson(text)
  return parsed === undefined ? text : (parsed as JsonValue)
}
