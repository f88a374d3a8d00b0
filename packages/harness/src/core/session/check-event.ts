import { isFields, isPositive, isText } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import { problemOfMessage, problemOfUserMessage } from './check-message.ts'
import { problemOfHeader } from './check-header.ts'

/** Says what is wrong with the data of an event, undefined where nothing is. */
export type DataCheck = (data: Fields) => string | undefined

const inTurn: DataCheck = data => (isPositive(data['turn']) ? undefined : 'turn is not a positive integer')

const inStep: DataCheck = data =>
  inTurn(data) ?? (isPositive(data['step']) ? undefined : 'step is not a positive integer')

const chunkTypes = new Set<unknown>([
  'block-start',
  'text-delta',
  'reasoning-delta',
  'tool-call-delta',
  'block-end',
  'usage',
  'finish',
])

function isChunk(value: unknown): boolean {
  if (!isFields(value)) return false
  const { type, index } = value
  return chunkTypes.has(type) && (type === 'usage' || type === 'finish' || Number.isSafeInteger(index))
}

function ofCall(data: Fields): string | undefined {
  const problem = inStep(data)
  if (problem !== undefined) return problem
  return isText(data['callId']) ? undefined : 'callId is not a non-empty string'
}

function ofResultError(error: unknown): string | undefined {
  if (error === undefined) return undefined
  return isFields(error) && isText(error['name']) && isText(error['code'])
    ? undefined
    : 'error has no name and code'
}

const todoStates = new Set<unknown>(['pending', 'in_progress', 'completed'])

function isTodo(value: unknown): boolean {
  return isFields(value) && typeof value['content'] === 'string' && todoStates.has(value['status'])
}

function ofSplice(data: Fields): string | undefined {
  const { target, start, removedCount, inserted, outcome } = data
  if (target !== 'next-turn' && target !== 'next-step') return 'target is neither "next-turn" nor "next-step"'
  if (!Number.isSafeInteger(start) || (start as number) < 0) return 'start is not a position'
  if (removedCount !== undefined && !isPositive(removedCount)) return 'removedCount is not a positive integer'
  if (outcome !== undefined && outcome !== 'canceled') return 'outcome is not "canceled"'
  if (!Array.isArray(inserted)) return 'inserted is no list'
  for (const [index, message] of inserted.entries()) {
    const problem = problemOfUserMessage(message, `inserted[${index}]`)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** The core's own types. */
export const coreChecks: Readonly<Record<string, DataCheck>> = {
  'turn/start': inTurn,
  'turn/end': data =>
    inTurn(data) ??
    (isFields(data['reason']) && isText(data['reason']['kind']) ? undefined : 'reason has no kind'),
  'step/start': inStep,
  'step/end': inStep,
  'user/message': data => problemOfUserMessage(data),
  'assistant/chunk': data =>
    inStep(data) ?? (isChunk(data['chunk']) ? undefined : 'chunk is not one of a model stream'),
  'assistant/message': data => inStep(data) ?? problemOfMessage(data['message'], 'assistant'),
  'tool/call': data =>
    ofCall(data) ??
    (typeof data['name'] === 'string' && typeof data['arguments'] === 'string'
      ? undefined
      : 'name and arguments are not strings'),
  'tool/start': ofCall,
  'tool/result': data =>
    inStep(data) ?? problemOfMessage(data['message'], 'tool') ?? ofResultError(data['error']),
  'tools/offered': data =>
    Array.isArray(data['names']) && data['names'].every(isText) ? undefined : 'names are not all texts',
  'todo/write': data =>
    Array.isArray(data['todos']) && data['todos'].every(isTodo)
      ? undefined
      : 'todos are not all {content, status}',
  'request/header': problemOfHeader,
  'request/context': data =>
    isText(data['provider']) && isText(data['model']) ? undefined : 'provider or model is missing',
  'session/end-seed': () => undefined,
  'session/archived': data =>
    typeof data['archived'] === 'boolean' ? undefined : 'archived is neither true nor false',
  'agent/inbox/spliced': ofSplice,
  'command/run': data =>
    isText(data['commandId']) && isText(data['name']) ? undefined : 'commandId or name is missing',
  'command/done': data =>
    isText(data['commandId']) && (data['kind'] === 'success' || data['kind'] === 'error')
      ? undefined
      : 'commandId is missing, or kind is neither "success" nor "error"',
}
