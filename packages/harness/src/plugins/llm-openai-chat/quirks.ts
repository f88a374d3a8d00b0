/** How one host departs from the plain Chat Completions format. */
export interface Quirks {
  /** The role under which the system prompt goes. */
  readonly systemRole: 'system' | 'developer'
  /** Fields of a delta that hold thinking, the first with text wins. */
  readonly reasoningFields: readonly string[]
  /** Whether assistant messages with tool calls carry their thinking back, as an empty text where there was none. */
  readonly reasoningReplay: 'never' | 'with-tool-calls'
  /** The field in which it goes back. */
  readonly reasoningReplayField: 'reasoning_content' | 'reasoning'
  readonly thinkingStyle: ThinkingStyle
  /** Asks for usage at the end of a stream. */
  readonly streamUsage: boolean
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** Whether a tool may be forced while the model thinks. Where not, forcing one turns thinking off. */
  readonly forcedToolWhileThinking: boolean
  /** Where a temperature is not sent: it would be refused or have no effect. */
  readonly temperature: 'always' | 'not-while-thinking' | 'never'
  readonly images: boolean
  /** The content of an assistant message that only calls tools. */
  readonly emptyContent: null | ''
  /** Longer ids of tool calls are replaced by shorter ones. */
  readonly maxCallIdLength: number
  /** Whether a comment line alone shows that the host is alive. */
  readonly commentsResetIdle: boolean
}

/**
 * How an effort is told.
 *
 * `effort`: `reasoning_effort` for all words · `deepseek`: the same, but `none` becomes `thinking: {type: disabled}` ·
 * `switch`: `thinking: {type}` alone, where any word but `none` is on · `enable-thinking`: the same as a boolean ·
 * `object`: `reasoning: {effort}` · `none`: not at all.
 */
export type ThinkingStyle = 'none' | 'effort' | 'deepseek' | 'switch' | 'enable-thinking' | 'object'

/** What most hosts understand. */
export const plainQuirks: Quirks = {
  systemRole: 'system',
  reasoningFields: ['reasoning_content', 'reasoning', 'reasoning_text', 'thinking'],
  reasoningReplay: 'never',
  reasoningReplayField: 'reasoning_content',
  thinkingStyle: 'effort',
  streamUsage: true,
  maxTokensField: 'max_tokens',
  forcedToolWhileThinking: true,
  temperature: 'always',
  images: true,
  emptyContent: '',
  maxCallIdLength: 64,
  commentsResetIdle: true,
}

/** What a model brings along wherever it is hosted, by a word in its name. The host's own facts win. */
const quirksByModel: readonly { readonly name: RegExp; readonly quirks: Partial<Quirks> }[] = [
  {
    name: /deepseek/i,
    quirks: { reasoningReplay: 'with-tool-calls', forcedToolWhileThinking: false, emptyContent: null },
  },
  { name: /kimi/i, quirks: { reasoningReplay: 'with-tool-calls' } },
  { name: /glm-/i, quirks: { reasoningReplay: 'with-tool-calls' } },
  { name: /minimax/i, quirks: { reasoningReplay: 'with-tool-calls' } },
]

export function quirksOf(model: string, ...layers: readonly (Partial<Quirks> | undefined)[]): Quirks {
  const known = quirksByModel.filter(entry => entry.name.test(model)).map(entry => entry.quirks)
  return Object.assign({}, plainQuirks, ...known, ...layers) as Quirks
}
