import type { ContentBlock, JsonValue, ToolErrorInfo, UserMessage } from '@dsh/protocol'
import { adopt } from '../../kernel/index.ts'
import { readThrown } from './thrown.ts'
import { inertMarkup } from './markup.ts'
import { wellFormed } from './text.ts'
import type { ToolErrorCode } from './errors.ts'
import type { ToolExecutionFailure, ToolExecutionResult, ToolExecutionSuccess } from './tool.ts'

const noContexts: readonly UserMessage[] = []

const abortedText = 'tool call aborted'
const abortedBeforeDispatchText = 'tool call aborted before dispatch'

export function success(parts: {
  readonly value: JsonValue
  readonly content: readonly ContentBlock[]
  readonly meta: JsonValue | undefined
  readonly concludes: boolean
}): ToolExecutionSuccess {
  const { value, content, meta, concludes } = parts
  return Object.freeze({
    isError: false,
    value,
    content,
    ...(meta === undefined ? {} : { meta }),
    ...(concludes ? { concludesTurn: true } : {}),
  })
}

/** What the model reads is `Error: ` and the message, unless `content` says otherwise. */
export function failure(
  message: string,
  extras: {
    readonly info?: ToolErrorInfo | undefined
    readonly content?: readonly ContentBlock[] | undefined
    readonly meta?: JsonValue | undefined
    readonly contexts?: readonly UserMessage[] | undefined
  } = {},
): ToolExecutionFailure {
  const { info, content = textContent(`Error: ${message}`), meta, contexts = noContexts } = extras
  return Object.freeze({
    isError: true,
    error: Object.freeze(info === undefined ? { message } : { message, info }),
    content,
    ...(meta === undefined ? {} : { meta }),
    ...(contexts.length === 0 ? {} : { additionalContexts: contexts }),
  })
}

export function failureOf(thrown: unknown): ToolExecutionFailure {
  const { message, info } = readThrown(thrown)
  return failure(message, { info: info === undefined ? undefined : adopt(info) })
}

/** What a call gives that was cancelled; `started` tells whether its body ran. */
export function abortFailure(options: {
  readonly started: boolean
  readonly contexts?: readonly UserMessage[] | undefined
}): ToolExecutionFailure {
  const { started, contexts } = options
  const code: ToolErrorCode = started ? 'ABORTED' : 'ABORTED_BEFORE_DISPATCH'
  const info = Object.freeze({ name: 'AbortError', code })
  return failure(started ? abortedText : abortedBeforeDispatchText, { info, contexts })
}

/** `result` with these contexts in place of its own. */
export function withContexts(
  result: ToolExecutionResult,
  contexts: readonly UserMessage[],
): ToolExecutionResult {
  const { additionalContexts: _, ...rest } = result
  return Object.freeze(contexts.length === 0 ? rest : { ...rest, additionalContexts: contexts })
}

export function withContent(
  result: ToolExecutionResult,
  content: readonly ContentBlock[],
): ToolExecutionResult {
  return Object.freeze({ ...result, content })
}

/**
 * `result` with its texts made inert, as the one text that a model may read them as: a tag that is torn into several
 * blocks is one too.
 */
export function withInertText(result: ToolExecutionResult): ToolExecutionResult {
  const texts = result.content.flatMap(block => (block.type === 'text' ? [block.text] : []))
  const text = texts.join('')
  const inert = inertMarkup(text)
  if (inert === text) return result
  let at = 0
  const content = result.content.map(block => {
    if (block.type !== 'text') return block
    const from = at
    at += block.text.length
    // oxlint-disable-next-line no-restricted-properties -- the seams of the blocks, where they were
    return { ...block, text: inert.slice(from, at) }
  })
  return withContent(result, adopt(content))
}

export function textContent(text: string): readonly ContentBlock[] {
  return adopt<readonly ContentBlock[]>([{ type: 'text', text: wellFormed(text) }])
}

/** Frozen content without half characters. Throws a TypeError for what is no list of content blocks. */
export function toContent(blocks: unknown, name: string): readonly ContentBlock[] {
  const content: unknown = adopt(blocks, name)
  if (!Array.isArray(content)) throw new TypeError(`${name} is not a list of content blocks`)
  for (const [index, block] of content.entries()) {
    const { type, text } = (block ?? {}) as { type?: unknown; text?: unknown }
    if (typeof type !== 'string') throw new TypeError(`${name}[${index}] has no type`)
    if (type === 'text' && typeof text !== 'string') throw new TypeError(`${name}[${index}] has no text`)
  }
  const list = content as readonly ContentBlock[]
  if (list.every(block => block.type !== 'text' || block.text.isWellFormed())) return list
  return adopt(
    list.map(block => (block.type === 'text' ? { ...block, text: wellFormed(block.text) } : block)),
  )
}

/** Frozen messages. Throws a TypeError for what is no list of user messages. */
export function toContexts(messages: unknown, name: string): readonly UserMessage[] {
  if (messages === undefined) return noContexts
  if (!Array.isArray(messages)) throw new TypeError(`${name} is not a list of messages`)
  return messages.map((message, index) => toContext(message, `${name}[${index}]`))
}

export function toContext(message: unknown, name: string): UserMessage {
  const context = adopt(message, name) as UserMessage | null | undefined
  if (context?.role !== 'user' || !Array.isArray(context.content)) {
    throw new TypeError(`${name} is not a user message`)
  }
  return context
}
