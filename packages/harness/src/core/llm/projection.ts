import type { CallId, Message, ToolCallBlock } from '@dsh/protocol'
import { isFields, parseJson } from '../../kernel/index.ts'

export type ProjectionProblemCode =
  /** A call that the messages right behind it do not answer. */
  | 'UNANSWERED_CALL'
  /** A second answer to the same call. */
  | 'ANSWERED_TWICE'
  /** An answer to a call that is not right before it. */
  | 'ANSWER_WITHOUT_CALL'
  /** Two calls of one message under one id. */
  | 'CALL_ID_TWICE'
  | 'EMPTY_ASSISTANT_MESSAGE'
  | 'ARGUMENTS_NOT_AN_OBJECT'

export interface ProjectionProblem {
  readonly code: ProjectionProblemCode
  /** Position of the message at fault. */
  readonly index: number
  readonly callId?: CallId
}

/**
 * What a strict provider would refuse in a history, in order; empty where there is nothing.
 *
 * It only looks: what must be mended is mended where an adapter encodes the request.
 */
export function checkProjection(messages: readonly Message[]): readonly ProjectionProblem[] {
  return new ProjectionCheck().check(messages)
}

/** The same for one history again and again: what was looked at before and still begins the history costs nothing. */
export class ProjectionCheck {
  #problems: ProjectionProblem[] = []
  #open: OpenCalls | undefined
  #count = 0
  #last: Message | undefined

  check(messages: readonly Message[]): readonly ProjectionProblem[] {
    if (this.#count > messages.length || messages[this.#count - 1] !== this.#last) this.#forget()
    for (let index = this.#count; index < messages.length; index++)
      this.#look(messages[index] as Message, index)
    this.#count = messages.length
    this.#last = messages.at(-1)
    return [...this.#problems, ...unanswered(this.#open)]
  }

  #forget(): void {
    this.#problems = []
    this.#open = undefined
    this.#count = 0
    this.#last = undefined
  }

  #look(message: Message, index: number): void {
    if (message.role === 'user' && message.content.some(block => block.type === 'tool-result')) {
      this.#problems.push(...checkAnswers(message, index, this.#open))
      return
    }
    this.#problems.push(...unanswered(this.#open))
    this.#open = undefined
    if (message.role !== 'assistant') return
    const calls = message.content.filter(block => block.type === 'tool-call')
    if (calls.length > 0)
      this.#open = { index, waiting: new Set(calls.map(call => call.id)), answered: new Set() }
    this.#problems.push(...checkAssistant(message, index, calls))
  }
}

interface OpenCalls {
  readonly index: number
  readonly waiting: Set<CallId>
  readonly answered: Set<CallId>
}

function checkAnswers(message: Message, index: number, open: OpenCalls | undefined): ProjectionProblem[] {
  const problems: ProjectionProblem[] = []
  for (const block of message.content) {
    if (block.type !== 'tool-result') continue
    const callId = block.toolCallId
    if (open?.waiting.delete(callId)) open.answered.add(callId)
    else if (open?.answered.has(callId)) problems.push({ code: 'ANSWERED_TWICE', index, callId })
    else problems.push({ code: 'ANSWER_WITHOUT_CALL', index, callId })
  }
  return problems
}

function unanswered(open: OpenCalls | undefined): ProjectionProblem[] {
  if (open === undefined) return []
  return [...open.waiting].map(callId => ({ code: 'UNANSWERED_CALL', index: open.index, callId }))
}

function checkAssistant(
  message: Message,
  index: number,
  calls: readonly ToolCallBlock[],
): ProjectionProblem[] {
  const problems: ProjectionProblem[] = []
  const isEmpty = message.content.every(block => block.type === 'text' && block.text === '')
  if (isEmpty) problems.push({ code: 'EMPTY_ASSISTANT_MESSAGE', index })
  const ids = new Set<CallId>()
  for (const { id, arguments: raw } of calls) {
    if (ids.has(id)) problems.push({ code: 'CALL_ID_TWICE', index, callId: id })
    ids.add(id)
    if (!isFields(parseJson(raw))) problems.push({ code: 'ARGUMENTS_NOT_AN_OBJECT', index, callId: id })
  }
  return problems
}
