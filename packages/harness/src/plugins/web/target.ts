import { isIP } from 'node:net'
import type { JudgeAddress } from './address.ts'
import { WebError } from './errors.ts'

export interface TargetRules {
  readonly maxUrlLength: number
  /** Ports that any host may be asked at. */
  readonly ports: readonly number[]
  /** `host` or `host:port`; `*.host` covers what is below a host. Their addresses and ports are not judged. */
  readonly allowHosts: readonly string[]
  readonly judgeAddress: JudgeAddress
}

/** A URL that may be asked as far as its text tells; its addresses are still to be judged. */
export interface Target {
  readonly url: URL
  /** As a socket wants it: without brackets or a dot at the end. */
  readonly host: string
  readonly port: number
  /** A person listed the host. */
  readonly isAllowed: boolean
}

/** Throws WEB_INVALID_URL or WEB_BLOCKED_URL; neither repeats a login. */
export function toTarget(text: string, rules: TargetRules): Target {
  const url = parse(text, rules.maxUrlLength)
  // The dot makes a name absolute; certificates and name checks know it without.
  url.hostname = url.hostname.replace(/\.+$/, '')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (host === '') throw new WebError('WEB_INVALID_URL', `${shown(text)} has no host`)
  const port = portOf(url)
  const isAllowed = rules.allowHosts.some(entry => covers(entry, host, port))
  if (isAllowed) return { url, host, port, isAllowed }
  const what = isIP(host) === 0 ? judgeName(host) : rules.judgeAddress(host)
  if (what !== undefined) throw blocked(host, what)
  if (!rules.ports.includes(port)) {
    const open = rules.ports.join(', ')
    throw new WebError(
      'WEB_BLOCKED_URL',
      `port ${port} of ${host} may not be reached, only ${open}${howToAllow}`,
    )
  }
  return { url, host, port, isAllowed }
}

/** Throws WEB_BLOCKED_URL where one of the addresses may not be reached: a name answers for all of them. */
export function assertAddresses(
  { host, isAllowed }: Target,
  addresses: readonly { readonly address: string }[],
  judge: JudgeAddress,
): void {
  if (isAllowed) return
  for (const { address } of addresses) {
    const what = judge(address)
    if (what !== undefined) throw blocked(`${host} (${address})`, what)
  }
}

function portOf({ protocol, port }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

const howToAllow = '; a person can list it under allowHosts in the config of web'

function blocked(host: string, what: string): WebError {
  return new WebError('WEB_BLOCKED_URL', `${host} may not be reached: ${what}${howToAllow}`)
}

function parse(text: string, maxLength: number): URL {
  if (text.length > maxLength)
    throw new WebError('WEB_INVALID_URL', `the URL has ${text.length} characters, more than ${maxLength}`)
  const url = URL.parse(text)
  if (url === null) throw new WebError('WEB_INVALID_URL', `${shown(text)} is no URL; begin it with https://`)
  if (url.username !== '' || url.password !== '')
    throw new WebError('WEB_INVALID_URL', 'the URL holds a login; leave it out')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new WebError('WEB_INVALID_URL', `${shown(text)} is not http or https`)
  return url
}

/** What stands before an @ may be a login. */
function shown(text: string): string {
  return JSON.stringify(text.replace(/[^/\s]*@/g, ''))
}

const localNames = [
  'localhost',
  'local',
  'internal',
  'localdomain',
  'lan',
  'home.arpa',
  'intranet',
  'corp',
  'home',
]

function judgeName(host: string): string | undefined {
  const name = host.toLowerCase()
  if (localNames.some(local => name === local || name.endsWith(`.${local}`))) return 'a local name'
  return name.includes('.') ? undefined : 'a name without a dot is local'
}

function covers(entry: string, host: string, port: number): boolean {
  const { name, isBelow, onlyPort } = readEntry(entry.trim().toLowerCase())
  if (onlyPort !== undefined && onlyPort !== port) return false
  return isBelow ? host.endsWith(`.${name}`) : host === name
}

interface Entry {
  readonly name: string
  readonly isBelow: boolean
  readonly onlyPort: number | undefined
}

function readEntry(text: string): Entry {
  if (isIP(text) === 6) return { name: hostOf(`[${text}]`), isBelow: false, onlyPort: undefined }
  const [, below, name = '', port] = /^(\*\.)?(.*?)(?::(\d+))?$/.exec(text) ?? []
  return {
    name: hostOf(name),
    isBelow: below !== undefined,
    onlyPort: port === undefined ? undefined : Number(port),
  }
}

/** As a URL would spell it. */
function hostOf(text: string): string {
  return (URL.parse(`http://${text}`)?.hostname ?? text).replace(/^\[|\]$|\.$/g, '')
}
