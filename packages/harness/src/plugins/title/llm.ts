import type { FinishReason, LlmCallConfig, StreamChunk, TokenUsage } from '@dsh/protocol'
import { createUserMessage } from '../../core/llm/index.ts'
import type { GenerateOptions, LlmResolvedModelInfo, LlmRuntime } from '../../core/llm/index.ts'
import { utf8Length } from '../../core/tools/index.ts'
import { messageOf } from '../../kernel/index.ts'
import { TitleError } from './errors.ts'
import { titleInstruction } from './instruction.ts'
import type { ProvidedTitle, TitleRequest, TitleRoute } from './provider.ts'

export interface LlmTitleConfig {
  readonly targetWords: number
  readonly targetCjkCharacters: number
  /** Of the messages as they are sent; a session with more gets no title of a model. */
  readonly maxInputBytes: number
  readonly maxOutputTokens: number
  readonly timeoutMs: number
  /** The model to ask; that of the session where both are absent. */
  readonly provider?: string | undefined
  readonly model?: string | undefined
}

export const llmTitleProvider = 'llm'

/** Asks a model for a title, once. The request is in the log before it is sent, and what it took after. */
export async function generateTitle(
  llm: LlmRuntime,
  request: TitleRequest,
  config: LlmTitleConfig,
): Promise<ProvidedTitle> {
  const { session, messages } = request
  const route = routeOf(request, config)
  const content = JSON.stringify(messages.map(({ seq, text }) => ({ seq, text })))
  const bytes = utf8Length(content)
  if (bytes > config.maxInputBytes) {
    const problem = `the messages have ${bytes} bytes, a request for a title takes ${config.maxInputBytes}`
    throw new TitleError('TITLE_INPUT_TOO_LARGE', problem)
  }
  const timeout = AbortSignal.timeout(config.timeoutMs)
  const signal = AbortSignal.any([request.signal, timeout])
  const call = callOf(await llm.resolveModelInfo(route.provider, route.model, signal), config)
  const system = titleInstruction(config.targetWords, config.targetCjkCharacters)
  const asked = [
    createUserMessage({
      content: [{ type: 'text', text: content }],
      source: { kind: 'plugin', plugin: 'title' },
    }),
  ]
  const messageSeqs = messages.map(({ seq }) => seq)
  const maxTokens = config.maxOutputTokens
  const logged = session.append('session/title-llm-request', {
    titleProvider: llmTitleProvider,
    messageSeqs,
    route,
    system,
    messages: asked,
    maxTokens,
  })
  const options = {
    ...call,
    system,
    messages: asked,
    sessionId: session.id,
    purpose: 'session-title',
    signal,
  } as const
  const answer = await answerOf(llm, options)
  const problem = answer.problem ?? (signal.aborted ? messageOf(signal.reason) : undefined)
  if (session.readOnly === undefined) {
    session.append('session/title-llm-result', {
      requestSeq: logged.seq,
      ...(problem === undefined ? {} : { problem }),
      ...(answer.usage === undefined ? {} : { usage: answer.usage }),
    })
  }
  signal.throwIfAborted()
  if (problem !== undefined)
    throw new TitleError('TITLE_REFUSED', `${route.provider}/${route.model}: ${problem}`)
  return { title: answer.text.replace(quotes, ''), messageSeqs, model: route }
}

function routeOf({ route }: TitleRequest, { provider, model }: LlmTitleConfig): TitleRoute {
  if (provider !== undefined && model !== undefined) return { provider, model }
  if (route !== undefined) return route
  throw new TitleError('TITLE_REFUSED', 'the session has not asked a model yet, and none is set for titles')
}

/** Models like to quote a title, whatever they are told. */
const quotes = /^[\s"'“‘«「『]+|[\s"'”’»」』]+$/gu

/** The least thinking the model offers: a small answer must not be spent on it. */
const leastEfforts = ['none', 'off', 'minimal', 'low']

function callOf({ provider, id, reasoning }: LlmResolvedModelInfo, config: LlmTitleConfig): LlmCallConfig {
  const efforts = reasoning?.efforts.map(effort => effort.id) ?? []
  const least = leastEfforts.find(effort => efforts.includes(effort)) ?? efforts[0]
  return {
    provider,
    model: id,
    maxTokens: config.maxOutputTokens,
    ...(least === undefined ? {} : { reasoningEffort: least }),
  }
}

interface Answer {
  readonly text: string
  readonly usage?: TokenUsage | undefined
  readonly problem?: string | undefined
}

async function answerOf(llm: LlmRuntime, options: GenerateOptions): Promise<Answer> {
  let text = ''
  let usage: TokenUsage | undefined
  let problem: string | undefined
  try {
    for await (const chunk of llm.stream(options)) {
      if (chunk.type === 'text-delta') text += chunk.text
      else if (chunk.type === 'usage') usage = chunk.usage
      else problem ??= problemOf(chunk)
    }
  } catch (error) {
    problem ??= messageOf(error)
  }
  if (problem === undefined && text.trim() === '') problem = 'the answer is empty'
  return { text, usage, problem }
}

function problemOf(chunk: StreamChunk): string | undefined {
  if (chunk.type === 'tool-call-delta') return 'the model called a tool'
  return chunk.type === 'finish' ? problemOfFinish(chunk.reason) : undefined
}

function problemOfFinish(reason: FinishReason): string | undefined {
  switch (reason.kind) {
    case 'stop':
      return undefined
    case 'error':
    case 'aborted':
      return `${reason.failure.code}: ${reason.failure.message}`
    case 'max-tokens':
      return 'the answer is longer than a title may be'
    default:
      return `the model stopped for ${reason.kind}`
  }
}
