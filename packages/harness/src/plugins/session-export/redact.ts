import type { JsonValue } from '@dsh/protocol'
import { literal } from '../../kernel/index.ts'

export interface RedactionOptions {
  /** Texts that must not appear, such as keys of the environment; short ones are passed over. */
  readonly secrets?: readonly string[]
  /** The person's home folder, which tells who they are. */
  readonly home?: string | undefined
}

interface Rule {
  readonly kind: string
  readonly pattern: RegExp
}

/** Shorter secrets would be found in every text. */
const shortestSecret = 8
const neutralHome = '/home/user'

/**
 * No pattern takes in a quote or a backslash at its end, so that JSON inside a text stays JSON. What a pattern looks at
 * before it knows that there is nothing has a longest length: else a text made for it takes hours.
 */
const rules: readonly Rule[] = [
  {
    kind: 'private key',
    pattern:
      /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----BEGIN)[^"]){1,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----/g,
  },
  {
    kind: 'key',
    pattern:
      /\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|npm_\w{30,}|xox[abeoprs]-[\w-]{10,}|A(?:KI|SI)A[0-9A-Z]{16}|AIza[\w-]{35}|ya29\.[\w-]{20,}|hf_\w{30,})/g,
  },
  { kind: 'web token', pattern: /\beyJ[\w-]{10,500}\.eyJ[\w-]{10,}\.[\w-]{5,}/g },
  { kind: 'authorization', pattern: /(?<=\b(?:Bearer|Basic) )[\w.~+/=-]{12,}/g },
  { kind: 'password', pattern: /(?<=\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@"'\\]{0,100}:)[^\s/@"'\\]+(?=@)/g },
  {
    kind: 'variable',
    pattern:
      /(?<=\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)=["']?)[^\s"'\\$&|;,)}<]{4,}/g,
  },
  {
    kind: 'value',
    pattern:
      /(?<=\b(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key)\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?)(?=[^\s"'\\]{0,200}\d)(?=[^\s"'\\]{0,200}[a-z])[^\s"'\\,;)}]{8,}/gi,
  },
]

/** Takes out of texts what must not leave, and counts it. */
export class Redaction {
  readonly #counts = new Map<string, number>()
  readonly #secrets: readonly string[]
  readonly #home: RegExp | undefined

  constructor({ secrets = [], home }: RedactionOptions = {}) {
    // Of two that begin alike the longer one first; and each as it stands in a JSON text, such as a call's arguments.
    const forms = secrets.flatMap(secret => [secret, JSON.stringify(secret).slice(1, -1)])
    this.#secrets = [...new Set(forms)]
      .filter(secret => secret.length >= shortestSecret)
      .toSorted((a, b) => b.length - a.length)
    const isOwn = home !== undefined && home.length > 1
    this.#home = isOwn ? new RegExp(`${literal(home.replace(/\/+$/, ''))}(?![\\w.-])`, 'g') : undefined
  }

  /** How many of each kind were taken out so far. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  text(text: string): string {
    let result = text
    for (const secret of this.#secrets) {
      if (result.includes(secret)) result = result.replaceAll(secret, () => this.#mark('secret'))
    }
    for (const { kind, pattern } of rules) result = result.replace(pattern, () => this.#mark(kind))
    return this.#home === undefined ? result : result.replace(this.#home, neutralHome)
  }

  /** A copy with every text in it gone over; names of fields stay. Any depth. */
  value<T extends JsonValue>(root: T): T {
    const holder: { root: JsonValue } = { root }
    const open: { readonly parent: Record<string, JsonValue>; readonly key: string }[] = [
      { parent: holder, key: 'root' },
    ]
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      const { parent, key } = place
      const value = parent[key]
      if (typeof value === 'string') put(parent, key, this.text(value))
      if (typeof value !== 'object' || value === null) continue
      const copy = copyOf(value) as Record<string, JsonValue>
      put(parent, key, copy)
      for (const inner of Object.keys(copy)) open.push({ parent: copy, key: inner })
    }
    return holder.root as T
  }

  #mark(kind: string): string {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
    return `[redacted ${kind}]`
  }
}

function copyOf(value: object): object {
  return Array.isArray(value) ? [...(value as readonly JsonValue[])] : { ...value }
}

/** Also where the key is `__proto__`, which an assignment takes for something else. */
function put(parent: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key !== '__proto__') parent[key] = value
  else Object.defineProperty(parent, key, { value, enumerable: true, writable: true, configurable: true })
}
