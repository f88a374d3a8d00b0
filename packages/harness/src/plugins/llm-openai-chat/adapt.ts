import type { Quirks } from './quirks.ts'

/** What a host refused, and how it is asked from now on. */
export interface Adaptation {
  /** Names the switch, so that none is flipped twice for one request. */
  readonly key: string
  /** What is different now, in words. */
  readonly text: string
  readonly quirks?: Partial<Quirks>
  /** The tool whose schema is sent open. */
  readonly openTool?: string
  /** A smaller output limit, for this request alone. */
  readonly maxTokens?: number
}

export interface Refusal {
  readonly status: number
  /** The whole body, as far as it was read. */
  readonly body: string
  readonly quirks: Quirks
  readonly sent: SentFacts
}

/** What was in the request that the host refused. */
export interface SentFacts {
  readonly maxTokens: number | undefined
  readonly effort: string | undefined
  readonly temperature: number | undefined
  readonly tools: readonly string[]
}

type Rule = (text: string, refusal: Refusal) => Adaptation | undefined

/** The switch to flip after a refusal that names one of our habits exactly; undefined for all others. */
export function adaptationFor(refusal: Refusal): Adaptation | undefined {
  if (refusal.status !== 400 && refusal.status !== 422) return undefined
  for (const rule of rules) {
    const found = rule(refusal.body, refusal)
    if (found) return found
  }
  return undefined
}

/** The host does not know, or does not want, the thing itself; a bad value of it is something else. */
const unwanted =
  /unsupported|not support|n't support|unknown|unrecogni[sz]ed|not (permitted|allowed)|unexpected|extra (inputs|fields?)|must not|no such|invalid (field|parameter|argument) name|not a valid field|rejected/i

const rules: readonly Rule[] = [
  (text, { quirks }) => {
    if (!/reasoning[_ ]?content/i.test(text)) return undefined
    const isWanted = /pass(ed)? back|missing|required|must be (passed|provided|included|sent|present)/i.test(
      text,
    )
    if (isWanted === (quirks.reasoningReplay !== 'never')) return undefined
    return isWanted
      ? {
          key: 'reasoning-on',
          text: 'thinking is sent back with tool calls',
          quirks: { reasoningReplay: 'with-tool-calls', reasoningReplayField: 'reasoning_content' },
        }
      : { key: 'reasoning-off', text: 'thinking is not sent back', quirks: { reasoningReplay: 'never' } }
  },
  (text, { quirks }) =>
    quirks.systemRole === 'developer' && /\bdeveloper\b/i.test(text)
      ? { key: 'role', text: 'the system prompt goes out as "system"', quirks: { systemRole: 'system' } }
      : undefined,
  (text, { quirks }) =>
    quirks.streamUsage && /stream_options|include_usage/i.test(text)
      ? { key: 'usage', text: 'usage is not asked for', quirks: { streamUsage: false } }
      : undefined,
  maxTokensField,
  smallerOutput,
  (text, { quirks, sent }) =>
    sent.temperature !== undefined &&
    quirks.temperature !== 'never' &&
    /temperature/i.test(text) &&
    unwanted.test(text)
      ? { key: 'temperature', text: 'no temperature is sent', quirks: { temperature: 'never' } }
      : undefined,
  (text, { quirks, sent }) =>
    sent.effort !== undefined &&
    quirks.thinkingStyle !== 'none' &&
    /reasoning_effort|enable_thinking|['"`](thinking|reasoning)['"`]/i.test(text) &&
    /unknown|unrecogni[sz]ed|not permitted|unexpected|extra (inputs|fields?)|unsupported (parameter|field)/i.test(
      text,
    )
      ? { key: 'thinking', text: 'no reasoning effort is sent', quirks: { thinkingStyle: 'none' } }
      : undefined,
  (text, { quirks }) =>
    quirks.images && /image_url|image input|multi-?modal/i.test(text) && unwanted.test(text)
      ? { key: 'images', text: 'pictures go out as text', quirks: { images: false } }
      : undefined,
  openedSchema,
]

function maxTokensField(text: string, { quirks, sent }: Refusal): Adaptation | undefined {
  if (sent.maxTokens === undefined) return undefined
  const field = quirks.maxTokensField
  const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
  const named = new RegExp(`(^|[^_a-z])${field}([^_a-z]|$)`, 'i')
  if (!named.test(text) || !unwanted.test(text)) return undefined
  return {
    key: 'max-tokens-field',
    text: `the output limit is sent as ${other}`,
    quirks: { maxTokensField: other },
  }
}

/** Leaves so much room beside what the host counted. */
const outputMargin = 1024

/** Input and output together are too much, but the input alone is not: a smaller answer fits. */
function smallerOutput(text: string, { sent }: Refusal): Adaptation | undefined {
  if (sent.maxTokens === undefined) return undefined
  const limit = numberAfter(
    text,
    /(?:maximum context length is|context (?:length|window|limit)(?: of| is|:)?)\s*([\d,_]+)/i,
  )
  const input = numberAfter(
    text,
    /([\d,_]+)\s*(?:tokens\s*)?(?:in|from|of)\s*(?:the |your )?(?:messages|prompt|input)/i,
  )
  if (limit === undefined || input === undefined) return undefined
  const room = limit - input - outputMargin
  if (room < outputMargin || room >= sent.maxTokens) return undefined
  return { key: 'max-tokens', text: `the answer is limited to ${room} tokens`, maxTokens: room }
}

function openedSchema(text: string, { sent }: Refusal): Adaptation | undefined {
  if (!/schema|parameters/i.test(text)) return undefined
  const named = /(?:function|tool)\s+['"`]([\w-]+)['"`]/i.exec(text)?.[1]
  const placed = /tools(?:\[|\.)(\d+)/i.exec(text)?.[1]
  const tool = named ?? (placed === undefined ? undefined : sent.tools[Number(placed)])
  if (tool === undefined || !sent.tools.includes(tool)) return undefined
  return { key: `tool ${tool}`, text: `tool "${tool}" goes out without its schema`, openTool: tool }
}

function numberAfter(text: string, pattern: RegExp): number | undefined {
  const digits = pattern.exec(text)?.[1]?.replaceAll(/[,_]/g, '')
  return digits === undefined || digits === '' ? undefined : Number(digits)
}
