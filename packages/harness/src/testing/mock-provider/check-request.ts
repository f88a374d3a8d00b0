import { isFields, isText, parseJson } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
/** What this provider accepts. The defaults are DeepSeek's. */
export interface RequestRules {
  readonly roles: readonly string[]
  /** Whether assistant messages with tool calls must carry `reasoning_content`, must not, or may. */
  readonly reasoning: 'required' | 'forbidden' | 'free'
  readonly efforts: readonly string[]
  readonly streamOptions: boolean
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  readonly images: boolean
  readonly forcedToolWhileThinking: boolean
  readonly maxTokens: number
}

export const deepseekRules: RequestRules = {
  roles: ['system', 'user', 'assistant', 'tool'],
  reasoning: 'required',
  efforts: ['minimal', 'low', 'medium', 'high', 'xhigh', 'max', 'ultra'],
  streamOptions: true,
  maxTokensField: 'max_tokens',
  images: true,
  forcedToolWhileThinking: false,
  maxTokens: 393_216,
}

/** Every reason why a strict provider would refuse this request; empty where it would not. */
export function checkChatRequest(text: string, rules: RequestRules = deepseekRules): string[] {
  if (hasLoneSurrogate(text)) return ['unpaired surrogate in the request body']
  const body = parseJson(text)
  if (!isFields(body)) return ['the request body is not a JSON object']
  const problems: string[] = []
  if (!isText(body['model'])) problems.push('model must be a non-empty string')
  checkOptions(body, rules, problems)
  checkTools(body['tools'], problems)
  const { messages } = body
  if (!Array.isArray(messages) || messages.length === 0) problems.push('messages must be a non-empty array')
  else new HistoryCheck(rules, isThinking(body), problems).run(messages)
  return problems
}

function isThinking(body: Fields): boolean {
  return !(isFields(body['thinking']) && body['thinking']['type'] === 'disabled')
}

function checkOptions(body: Fields, rules: RequestRules, problems: string[]): void {
  const effort = body['reasoning_effort']
  if (effort !== undefined && !(typeof effort === 'string' && rules.efforts.includes(effort))) {
    problems.push(
      `reasoning_effort must be one of ${rules.efforts.join(', ')}, not ${JSON.stringify(effort)}`,
    )
  }
  if (body['stream_options'] !== undefined) {
    if (!rules.streamOptions) problems.push('unknown field: stream_options')
    else if (body['stream'] !== true) problems.push('stream_options needs stream: true')
  }
  const choice = body['tool_choice']
  const forced = choice === 'required' || isFields(choice)
  if (forced && isThinking(body) && !rules.forcedToolWhileThinking) {
    problems.push('Thinking mode does not support this tool_choice')
  }
  checkMaxTokens(body, rules, problems)
}

function checkMaxTokens(body: Fields, rules: RequestRules, problems: string[]): void {
  const { maxTokensField: field, maxTokens } = rules
  const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
  if (body[other] !== undefined) {
    problems.push(
      `Unsupported parameter: '${other}' is not supported with this model. Use '${field}' instead.`,
    )
  }
  const limit = body[field]
  if (limit === undefined) return
  if (Number.isInteger(limit) && Number(limit) >= 1 && Number(limit) <= maxTokens) return
  problems.push(`${field} must be an integer from 1 to ${maxTokens}`)
}

const toolName = /^[a-zA-Z0-9_-]{1,64}$/

function checkTools(tools: unknown, problems: string[]): void {
  if (tools === undefined) return
  if (!Array.isArray(tools) || tools.length === 0)
    return void problems.push('tools must be a non-empty array')
  const names = new Set<string>()
  for (const [at, tool] of tools.entries()) {
    const made: unknown = isFields(tool) && tool['type'] === 'function' ? tool['function'] : undefined
    if (!isFields(made)) {
      problems.push(`tools[${at}] must be {type: 'function', function}`)
      continue
    }
    const { name, parameters } = made
    if (typeof name !== 'string' || !toolName.test(name))
      problems.push(`tools[${at}].function.name is not valid`)
    else if (names.has(name)) problems.push(`tools[${at}].function.name "${name}" is there twice`)
    else names.add(name)
    if (!isFields(parameters) || parameters['type'] !== 'object') {
      problems.push(`Invalid schema for function '${String(name)}': schema must be of type "object"`)
    }
  }
}

/** Walks a history and holds it to the rules of pairing: each call answered once, directly after it was made. */
class HistoryCheck {
  readonly #rules: RequestRules
  readonly #thinking: boolean
  readonly #problems: string[]
  #open = new Set<string>()

  constructor(rules: RequestRules, thinking: boolean, problems: string[]) {
    this.#rules = rules
    this.#thinking = thinking
    this.#problems = problems
  }

  run(messages: readonly unknown[]): void {
    for (const [at, message] of messages.entries()) this.#message(message, `messages[${at}]`)
    this.#closeCalls('the end')
  }

  #message(message: unknown, where: string): void {
    if (!isFields(message)) return void this.#problems.push(`${where} must be an object`)
    const { role } = message
    if (typeof role !== 'string' || !this.#rules.roles.includes(role)) {
      this.#problems.push(
        `${where}.role: unknown variant \`${String(role)}\`, expected one of ${this.#rules.roles.join(', ')}`,
      )
    }
    if (role === 'tool') return this.#toolResult(message, where)
    this.#closeCalls(where)
    if (role === 'assistant') return this.#assistant(message, where)
    this.#content(message['content'], where)
  }

  #content(content: unknown, where: string): void {
    if (isText(content)) return
    if (!Array.isArray(content) || content.length === 0) {
      return void this.#problems.push(`${where}.content must be a non-empty string or array`)
    }
    for (const [at, part] of content.entries()) {
      const isImage = isFields(part) && part['type'] === 'image_url' && isFields(part['image_url'])
      if (isImage && this.#rules.images) continue
      if (isFields(part) && part['type'] === 'text' && isText(part['text'])) continue
      this.#problems.push(
        `${where}.content[${at}]: unknown variant \`${isFields(part) ? String(part['type']) : ''}\`, expected \`text\``,
      )
    }
  }

  #assistant(message: Fields, where: string): void {
    const { content, tool_calls: calls } = message
    if (content !== undefined && content !== null && typeof content !== 'string') {
      this.#problems.push(`${where}.content must be a string or null`)
    }
    const hasReasoning = message['reasoning_content'] !== undefined
    if (hasReasoning && this.#rules.reasoning === 'forbidden') {
      this.#problems.push(`${where}: reasoning_content is not supported in input messages`)
    }
    if (calls === undefined) {
      if (!isText(content))
        this.#problems.push(`${where}: an assistant message must have content or tool_calls`)
      return
    }
    if (!Array.isArray(calls) || calls.length === 0) {
      return void this.#problems.push(`${where}.tool_calls must be a non-empty array`)
    }
    for (const [at, call] of calls.entries()) this.#call(call, `${where}.tool_calls[${at}]`)
    if (
      this.#rules.reasoning === 'required' &&
      this.#thinking &&
      typeof message['reasoning_content'] !== 'string'
    ) {
      this.#problems.push(
        `${where}: the reasoning_content in the thinking mode must be passed back to the API`,
      )
    }
  }

  #call(call: unknown, where: string): void {
    const made: unknown = isFields(call) && call['type'] === 'function' ? call['function'] : undefined
    if (!isFields(call) || !isFields(made))
      return void this.#problems.push(`${where} must be {id, type: 'function', function}`)
    const { id } = call
    if (!isText(id)) this.#problems.push(`${where}.id must be a non-empty string`)
    else if (this.#open.has(id)) this.#problems.push(`${where}.id "${id}" is there twice`)
    else this.#open.add(id)
    if (typeof made['name'] !== 'string' || !toolName.test(made['name']))
      this.#problems.push(`${where}.function.name is not valid`)
    const args: unknown = typeof made['arguments'] === 'string' ? parseJson(made['arguments']) : undefined
    if (!isFields(args)) this.#problems.push(`${where}.function.arguments must be the text of a JSON object`)
  }

  #toolResult(message: Fields, where: string): void {
    const id = message['tool_call_id']
    if (!isText(id) || !this.#open.delete(id)) {
      this.#problems.push(
        `${where}: a message with role 'tool' must answer a preceding message with 'tool_calls'`,
      )
    }
    if (typeof message['content'] !== 'string') this.#content(message['content'], where)
  }

  #closeCalls(where: string): void {
    if (this.#open.size === 0) return
    const ids = [...this.#open].join(', ')
    this.#problems.push(`tool_call_ids without a tool message before ${where}: ${ids}`)
    this.#open = new Set()
  }
}

/** Also an escape counts: a JSON parser that refuses half a pair refuses it in this form. */
function hasLoneSurrogate(text: string): boolean {
  if (!text.isWellFormed()) return true
  const halves = /\\*\\u(d[89ab][0-9a-f]{2})(\\u(d[c-f][0-9a-f]{2}))?|\\*\\u(d[c-f][0-9a-f]{2})/gi
  for (const match of text.matchAll(halves)) {
    const slashes = match[0].indexOf('u')
    const isEscape = slashes % 2 === 1
    if (isEscape && match[3] === undefined) return true
  }
  return false
}
