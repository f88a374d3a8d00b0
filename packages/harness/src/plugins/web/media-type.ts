export interface MediaType {
  /** `type/subtype` in small letters; empty where none is said. */
  readonly essence: string
  readonly charset?: string
}

export function parseMediaType(header: string | undefined): MediaType {
  const [essence = '', ...parameters] = (header ?? '').split(';')
  for (const parameter of parameters) {
    const [, charset] = /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/i.exec(parameter) ?? []
    if (charset !== undefined) return { essence: essence.trim().toLowerCase(), charset }
  }
  return { essence: essence.trim().toLowerCase() }
}

const htmlTypes = ['text/html', 'application/xhtml+xml']

const textTypes = [
  'application/json',
  'application/xml',
  'application/javascript',
  'application/ecmascript',
  'application/x-javascript',
  'application/typescript',
  'application/x-sh',
  'application/ndjson',
  'application/x-ndjson',
  'application/jsonl',
  'application/yaml',
  'application/x-yaml',
  'application/toml',
  'application/graphql',
  'application/sql',
  'application/x-www-form-urlencoded',
]

/** How a body of this type is read; undefined = not at all. An absent type is for the body itself to tell. */
export function kindOf(essence: string): 'html' | 'text' | 'unsaid' | undefined {
  if (essence === '') return 'unsaid'
  if (htmlTypes.includes(essence)) return 'html'
  if (essence.startsWith('text/') || textTypes.includes(essence)) return 'text'
  return /\+(json|xml|yaml)$/.test(essence) ? (essence.startsWith('image/') ? undefined : 'text') : undefined
}

/** What a body without a type is; undefined = nothing to read. */
export function sniff(bytes: Uint8Array): 'html' | 'text' | undefined {
  const start = bytes.subarray(0, sniffedBytes)
  const isWide = (start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff)
  if (!isWide && start.includes(0)) return undefined
  const text = Buffer.from(start)
    .toString('utf8')
    .replace(/<!--[^]*?(-->|$)/g, '')
  return /^[\s\uFEFF]*<(!doctype\s+html|html|head|body)\b/i.test(text) ? 'html' : 'text'
}

const sniffedBytes = 1024
