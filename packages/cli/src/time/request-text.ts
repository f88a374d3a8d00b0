import { placeOf } from '@dsh/harness/plugins/time-travel'
import type {
  LoggedRequest,
  RebuiltRequest,
  RequestComparison,
  CacheBreak,
} from '@dsh/harness/plugins/time-travel'
import type { ContentBlock, EpochHeader, LlmCallConfig, Message } from '@dsh/protocol'
import { grouped, inert, oneLine, size, unbroken } from '../text.ts'

export interface ShownRequest {
  readonly logged: LoggedRequest
  readonly rebuilt: RebuiltRequest
  /** Input tokens that the provider says it read from its cache. */
  readonly cached?: number | undefined
}

/** One line: which request it is, when it was made, and what came of it. */
function headLine({ logged, rebuilt, cached }: ShownRequest): string {
  const { n, turn, step, attempt, seq } = logged
  const { provider, model } = rebuilt.header.config
  const retry = attempt === 1 ? '' : `, attempt ${attempt}`
  const hit = cached === undefined ? '' : ` · ${grouped(cached)} tokens from the cache`
  return unbroken(
    `request ${n} · turn ${turn}, step ${step}${retry} · before event #${seq} · ${provider}/${model} · ${outcomeOf(logged)}${hit}`,
  )
}

function outcomeOf({ outcome }: LoggedRequest): string {
  switch (outcome.kind) {
    case 'answered':
      return `answered by #${outcome.seq}`
    case 'failed':
      return `failed at #${outcome.seq}: ${outcome.failure.code}`
    case 'cut':
      return `broken off at #${outcome.seq}`
    case 'silent':
      return 'no answer began, so it may not have been sent'
    case 'open':
      return 'running'
  }
}

/** The whole request for a person: config, system text, tools, and every message in full. */
export function requestLines(shown: ShownRequest): string[] {
  const { header, messages, seqs } = shown.rebuilt
  const { system, tools = [] } = header
  return [
    headLine(shown),
    '',
    `config    ${configText(header)}`,
    ...(system === undefined ? ['system    none'] : ['system', ...barred(system)]),
    tools.length === 0 ? 'tools     none' : `tools     ${tools.length}`,
    ...tools.map(tool => `  ${unbroken(tool.name)}  ${oneLine(tool.description)}`),
    `messages  ${messages.length}`,
    ...messages.flatMap((message, index) => messageLines(message, index, seqs[index])),
  ]
}

function configText({ config, adapterDefaults = {} }: EpochHeader): string {
  const { provider, model, ...rest } = config
  const fields = Object.entries(rest as Omit<LlmCallConfig, 'provider' | 'model'>).map(([name, value]) => {
    const isDefault = name in adapterDefaults ? ' (of the adapter)' : ''
    return `${name} ${JSON.stringify(value)}${isDefault}`
  })
  return inert([`${provider}/${model}`, ...fields].join(', '))
}

function messageLines(message: Message, index: number, seq: number | undefined): string[] {
  const { role, source, content } = message
  const from = source.kind === 'user' || source.kind === 'model' ? '' : ` (${source.kind})`
  const head = `  ${index} ${role}${from}${seq === undefined ? '' : ` #${seq}`}`
  return [unbroken(head), ...content.flatMap(block => barred(blockText(block)))]
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'reasoning':
      return `[thinking] ${block.text}`
    case 'tool-call':
      return `[call ${block.id}] ${block.name} ${block.arguments}`
    case 'tool-result': {
      const failed = block.isError === true ? ', failed' : ''
      return `[result of ${block.toolCallId}${failed}]\n${block.content.map(blockText).join('\n')}`
    }
    case 'image':
      return `[picture ${block.attachment.mediaType}, ${size(block.attachment.bytes)}]`
    default:
      return `[${(block as { type: string }).type}]`
  }
}

function barred(text: string): string[] {
  return inert(text)
    .split('\n')
    .map(line => `    │ ${line}`)
}

/** What is different between two requests, and what that costs. */
export function comparisonLines(
  before: ShownRequest,
  after: ShownRequest,
  found: RequestComparison,
): string[] {
  const { sharedBytes, beforeBytes, afterBytes, first, broken, harmless } = found
  const names = [before, after].map(({ logged }) => placeOf(logged))
  const own = `${size(beforeBytes)} and ${size(afterBytes)}`
  return [
    `- ${headLine(before)}`,
    `+ ${headLine(after)}`,
    '',
    first === undefined
      ? `${size(sharedBytes)} identical, all of both`
      : `${size(sharedBytes)} identical — cached`,
    ...differenceLines(found),
    '',
    broken === undefined ? keptText(found, names) : `cache broken here: ${breakText(broken)}`,
    ...harmless.map(change => `also different, without harm to the cache: ${inert(change)}`),
    ...(first === undefined ? [] : [`sizes: ${own}`]),
  ]
}

function differenceLines({ first, sharedMessages }: RequestComparison): string[] {
  if (first === undefined) return []
  const { part, index, before, after } = first
  const where = part === 'messages' ? `message ${index}, behind ${sharedMessages} that are the same` : part
  const side = (sign: string, text: string | undefined): string[] =>
    text === undefined ? [] : [`${sign} ${oneLine(text)}`]
  return [`first difference: ${where}`, ...side('-', before), ...side('+', after)]
}

function keptText({ first }: RequestComparison, [before, after]: readonly string[]): string {
  if (first === undefined) return 'nothing broke the cache'
  return first.before === undefined
    ? `nothing broke the cache: ${after} goes on where ${before} ends`
    : `nothing broke the cache: ${after} is the beginning of ${before}`
}

/** Why a provider's cache is of no use from some place on. */
function breakText(broken: CacheBreak): string {
  switch (broken.kind) {
    case 'route':
      return inert(`another model is asked, ${broken.before} → ${broken.after}`)
    case 'config':
      return inert(`the reasoning effort changed, ${broken.before} → ${broken.after}`)
    case 'system':
      return 'the system text changed'
    case 'tools': {
      const { added, removed, changed, reordered } = broken
      const facts = [
        ...added.map(name => `+${name}`),
        ...removed.map(name => `-${name}`),
        ...changed.map(name => `~${name}`),
        ...(reordered ? ['another order'] : []),
      ]
      return unbroken(`the tool list changed (${facts.join(', ')})`)
    }
    case 'history': {
      const { index, replacedBy } = broken
      if (replacedBy === undefined) return `the history is another one from message ${index} on`
      const { seq, type, start, end } = replacedBy
      return unbroken(
        `the history was replaced at message ${index}: #${seq} (${type}) stands for #${start} to #${end}`,
      )
    }
  }
}
