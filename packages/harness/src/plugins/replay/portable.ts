import type { ContentBlock, EpochHeader, JsonValue, Message } from '@dsh/protocol'
import type { GenerateOptions } from '../../core/llm/index.ts'
import { literal } from '../../kernel/index.ts'
import type { Redaction } from '../session-export/index.ts'

/** A request as it is compared: without ids, and with the same words for the same thing on every machine. */
export interface CanonicalRequest {
  readonly header: EpochHeader
  readonly messages: readonly CanonicalMessage[]
}

export interface CanonicalMessage {
  readonly role: Message['role']
  readonly content: readonly ContentBlock[]
}

export interface PortableOptions {
  /** Where a session works. */
  readonly workspace: string | undefined
  /** The home folder of whoever runs it. */
  readonly home?: string | undefined
  readonly redaction?: Redaction | undefined
}

const workspaceWord = '{workspace}'
const homeWord = '{home}'

/** Says what belongs to one machine in words that every machine understands, and back. */
export class Portable {
  readonly #words: readonly { readonly path: string; readonly pattern: RegExp; readonly word: string }[]
  readonly #redaction: Redaction | undefined
  readonly #messages = new WeakMap<Message, CanonicalMessage>()
  readonly #headers = new WeakMap<EpochHeader, EpochHeader>()

  constructor({ workspace, home, redaction }: PortableOptions) {
    const named = [
      { path: workspace, word: workspaceWord },
      { path: home, word: homeWord },
    ]
    this.#redaction = redaction
    this.#words = named.flatMap(({ path, word }) => {
      const folder = path?.replace(/\/+$/, '')
      if (folder === undefined || folder === '') return []
      // The folder itself, not one whose name begins like it.
      const pattern = new RegExp(`${literal(folder)}(?![\\w-]|\\.\\w)`, 'g')
      return { path: folder, pattern, word }
    })
  }

  /** A copy for any machine. */
  out<T>(value: T): T {
    return mapTexts(value, text => this.#textOut(text))
  }

  /** A copy for this machine. */
  here<T>(value: T): T {
    return mapTexts(value, text =>
      this.#words.reduce((said, { word, path }) => said.replaceAll(word, () => path), text),
    )
  }

  canonical(header: EpochHeader, messages: readonly Message[]): CanonicalRequest {
    return { header: this.#header(header), messages: messages.map(message => this.#message(message)) }
  }

  #textOut(text: string): string {
    const said = this.#words.reduce((rest, { pattern, word }) => rest.replace(pattern, () => word), text)
    return this.#redaction === undefined ? said : this.#redaction.text(said)
  }

  #header(header: EpochHeader): EpochHeader {
    const known = this.#headers.get(header)
    if (known !== undefined) return known
    const { config, system, tools } = this.out(header)
    const canonical = {
      config,
      ...(system === undefined ? {} : { system: withoutTimes(system) }),
      ...(tools === undefined ? {} : { tools }),
    }
    this.#headers.set(header, canonical)
    return canonical
  }

  #message(message: Message): CanonicalMessage {
    const known = this.#messages.get(message)
    if (known !== undefined) return known
    const { role, content, source } = message
    const said = this.out(content)
    const canonical = { role, content: source.kind === 'plugin' ? mapTexts(said, withoutTimes) : said }
    this.#messages.set(message, canonical)
    return canonical
  }
}

/** The header of a request that is being sent; the same object for the same parts. */
export function headerOf(request: GenerateOptions): EpochHeader {
  const { messages: _messages, sessionId: _session, signal: _signal, purpose: _purpose, ...rest } = request
  const { system, tools, ...config } = rest
  return {
    config,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
  }
}

/** Days and times that a program put there. */
function withoutTimes(text: string): string {
  return text
    .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?/g, '{time}')
    .replace(/\b\d{4}-\d\d-\d\d\b/g, '{date}')
}

function mapTexts<T>(value: T, change: (text: string) => string): T
function mapTexts(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(entry => mapTexts(entry, change))
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, mapTexts(entry, change)]))
}
