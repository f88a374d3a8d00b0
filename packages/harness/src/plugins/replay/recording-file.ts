import {
  array,
  boolean,
  enum as oneOf,
  int,
  json,
  looseObject,
  minimum,
  object,
  optional,
  string,
} from 'zod/mini'
import type { EpochHeader } from '@dsh/protocol'
import { messageOf } from '../../kernel/index.ts'
import { adoptChunk } from '../../core/llm/index.ts'
import { approvalPolicies } from '../approval/events.ts'
import { sandboxModes } from '../sandbox/events.ts'
import { ReplayError } from './errors.ts'
import type { CanonicalMessage } from './portable.ts'
import type { RecordedRequest, Recording } from './recording.ts'

const format = 'dsh-recording'
const version = 1

/** A line of the file: a request, of which only what is new in it is written. */
interface RequestLine extends Omit<RecordedRequest, 'request'> {
  /** Absent = that of the line before. */
  readonly header?: EpochHeader
  /** So many messages of the line before begin the history. */
  readonly keep: number
  readonly messages: readonly CanonicalMessage[]
}

/** A recording as text: a line that says what it is, and one for each request. */
export function writeRecording({ requests }: Recording): string {
  const lines: object[] = [{ format, version, requests: requests.length }]
  let last: RecordedRequest['request'] | undefined
  for (const { request, ...rest } of requests) {
    const { header, messages } = request
    // Byte for byte, keys in their order: a provider's cache goes by that.
    const isSame = JSON.stringify(header) === JSON.stringify(last?.header)
    const keep = sharedLength(last?.messages ?? [], messages)
    const line: RequestLine = {
      ...rest,
      ...(isSame ? {} : { header }),
      keep,
      messages: messages.slice(keep),
    }
    lines.push(line)
    last = request
  }
  return lines.map(line => `${JSON.stringify(line)}\n`).join('')
}

/** Throws NOT_A_RECORDING, RECORDING_TOO_NEW, or RECORDING_DAMAGED naming the line. */
export function readRecording(text: string, name: string): Recording {
  const [head = '', ...lines] = text.replace(/\n$/, '').split('\n')
  const count = readHead(head, name)
  const requests: RecordedRequest[] = []
  for (const [index, line] of lines.entries()) {
    try {
      requests.push(readRequest(line, requests.at(-1)))
    } catch (cause) {
      throw new ReplayError('RECORDING_DAMAGED', `${name}:${index + 2}: ${messageOf(cause)}`, { cause })
    }
  }
  if (requests.length === count && count > 0) return { requests }
  const problem = `it says that it holds ${count} requests, and holds ${requests.length}`
  throw new ReplayError('RECORDING_DAMAGED', `${name}: ${problem}`)
}

/** The same recording with these requests in place of its own, one for one; undefined where their number is another. */
export function withRequests(
  { requests }: Recording,
  made: readonly RecordedRequest['request'][],
): Recording | undefined {
  if (made.length !== requests.length) return undefined
  return { requests: requests.map((each, index) => ({ ...each, request: made[index] ?? each.request })) }
}

function readHead(line: string, name: string): number {
  let head: { readonly format?: unknown; readonly version?: unknown; readonly requests?: unknown } = {}
  try {
    head = (JSON.parse(line) ?? {}) as typeof head
  } catch {
    // No JSON is no recording.
  }
  if (head.format !== format || typeof head.version !== 'number')
    throw new ReplayError('NOT_A_RECORDING', `"${name}" is no recording of a session`)
  if (head.version > version)
    throw new ReplayError(
      'RECORDING_TOO_NEW',
      `"${name}" has version ${head.version} of the format; this dsh reads up to ${version}`,
    )
  return typeof head.requests === 'number' ? head.requests : 0
}

function readRequest(line: string, last: RecordedRequest | undefined): RecordedRequest {
  const checked = lineSchema().parse(JSON.parse(line)) as unknown as RequestLine
  const { header = last?.request.header, keep, messages, ...rest } = checked
  if (header === undefined) throw new TypeError('header is missing')
  const known = last?.request.messages ?? []
  if (keep > known.length) throw new RangeError(`keep is ${keep}, and there are ${known.length} messages`)
  const answer = rest.answer.map(chunk => adoptChunk(chunk))
  return { ...rest, answer, request: { header, messages: [...known.slice(0, keep), ...messages] } }
}

function lineSchema() {
  const count = int().check(minimum(1))
  const blocks = array(looseObject({ type: string() }))
  const message = object({ role: oneOf(['system', 'user', 'assistant']), content: blocks })
  return object({
    turn: count,
    step: count,
    attempt: count,
    header: optional(
      object({
        config: looseObject({ provider: string(), model: string() }),
        system: optional(string()),
        tools: optional(array(object({ name: string(), description: string(), parameters: json() }))),
      }),
    ),
    permission: optional(
      object({ mode: optional(oneOf(sandboxModes)), policy: optional(oneOf(approvalPolicies)) }),
    ),
    keep: int().check(minimum(0)),
    messages: array(message),
    entered: array(object({ content: blocks, source: looseObject({ kind: string() }) })),
    replaced: optional(
      array(
        object({
          index: int().check(minimum(0)),
          count,
          type: oneOf(['user/message', 'assistant/message', 'tool/result']),
          content: blocks,
          source: looseObject({ kind: string() }),
        }),
      ),
    ),
    answer: array(json()),
    outcome: oneOf(['answered', 'failed', 'cut', 'silent']),
    results: array(
      object({
        callId: string(),
        name: string(),
        arguments: string(),
        content: blocks,
        isError: boolean(),
        error: optional(object({ name: string(), code: string(), reason: optional(string()) })),
        meta: optional(json()),
      }),
    ),
    end: optional(oneOf(['stopped', 'concluded'])),
  })
}

function sharedLength(before: readonly CanonicalMessage[], after: readonly CanonicalMessage[]): number {
  let at = 0
  while (at < before.length && before[at] === after[at]) at++
  return at
}
