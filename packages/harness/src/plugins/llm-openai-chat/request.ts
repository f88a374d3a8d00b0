import type { JsonValue } from '@dsh/protocol'
import type { GenerateOptions } from '../../core/llm/index.ts'
import type { Quirks } from './quirks.ts'

export interface BodyOptions {
  readonly quirks: Quirks
  /** Fields of the config that are sent as they are. */
  readonly extra: Readonly<Record<string, JsonValue>>
  readonly tools: string | undefined
  /** In place of the limit that was asked for. */
  readonly maxTokens?: number | undefined
  /** Told of an option that is not sent. */
  leftOut(option: string, why: string): void
}

type Fields = Record<string, JsonValue>

/** All of a body before its messages: `{…,"messages":[`. */
export function bodyHead(options: GenerateOptions, body: BodyOptions): string {
  const fields = JSON.stringify({ ...requestFields(options, body), ...body.extra })
  const tools = body.tools === undefined ? '' : `,"tools":${body.tools}`
  return `${fields.slice(0, -1)}${tools},"messages":[`
}

export const bodyTail = ']}'

function requestFields(options: GenerateOptions, { quirks, extra, maxTokens, leftOut }: BodyOptions): Fields {
  const { model, stop, reasoningEffort: effort } = options
  const isForced = isForcedTool(extra['tool_choice'])
  const mustNotThink = isForced && !quirks.forcedToolWhileThinking && quirks.thinkingStyle !== 'none'
  if (mustNotThink && effort !== 'none') leftOut('thinking', 'the model cannot think while a tool is forced')
  const word = mustNotThink ? 'none' : effort
  const fields: Fields = { model, stream: true }
  if (quirks.streamUsage) fields['stream_options'] = { include_usage: true }
  const limit = maxTokens ?? options.maxTokens
  if (limit !== undefined) fields[quirks.maxTokensField] = limit
  if (options.temperature !== undefined) {
    const why = temperatureProblem(quirks, word)
    if (why === undefined) fields['temperature'] = options.temperature
    else leftOut('temperature', why)
  }
  if (stop !== undefined && stop.length > 0) fields['stop'] = [...stop]
  return { ...fields, ...thinkingFields(quirks, word, leftOut) }
}

function isForcedTool(choice: JsonValue | undefined): boolean {
  return choice === 'required' || (typeof choice === 'object' && choice !== null)
}

function temperatureProblem({ temperature }: Quirks, effort: string | undefined): string | undefined {
  if (temperature === 'never') return 'this model has one of its own'
  if (temperature === 'not-while-thinking' && effort !== 'none')
    return 'it has no effect while the model thinks'
  return undefined
}

function thinkingFields(quirks: Quirks, effort: string | undefined, leftOut: BodyOptions['leftOut']): Fields {
  if (effort === undefined) return {}
  const isOn = effort !== 'none'
  switch (quirks.thinkingStyle) {
    case 'effort':
      return { reasoning_effort: effort }
    case 'deepseek':
      return isOn ? { reasoning_effort: effort } : { thinking: { type: 'disabled' } }
    case 'switch':
      return { thinking: { type: isOn ? 'enabled' : 'disabled' } }
    case 'enable-thinking':
      return { enable_thinking: isOn }
    case 'object':
      return { reasoning: { effort } }
    case 'none':
      leftOut('reasoning effort', 'this host takes none')
      return {}
  }
}
