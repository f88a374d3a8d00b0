export type Environment = Readonly<Record<string, string | undefined>>

const harmless = [
  'PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ TERM COLORTERM TMPDIR TMP TEMP XDG_* EDITOR PAGER NO_COLOR CI',
  'HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy',
].flatMap(names => names.split(' '))

const secretWords = new Set(
  [
    'APIKEY AUTH AUTHORIZATION COOKIE CRED CREDENTIAL CREDENTIALS CREDS KEY KEYS',
    'PASS PASSFILE PASSPHRASE PASSWD PASSWORD PAT SECRET SECRETS TOKEN TOKENS',
  ].flatMap(words => words.split(' ')),
)

const userInfo = /^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]*@/i

export interface ChildEnvironment {
  readonly env: Readonly<Record<string, string>>
  /** Names that were left out, in code-unit order. */
  readonly withheld: readonly string[]
}

/**
 * What processes get of `env`: names known to be harmless, and those of `pass`, where `*` stands for any characters.
 *
 * A name that only a pattern of `pass` lets through is still held back where a word of it tells a secret or its value
 * is an address with a password. The harness's own variables never pass by pattern.
 */
export function childEnvironment(env: Environment, pass: readonly string[]): ChildEnvironment {
  const isHarmless = toMatcher(harmless)
  const isNamed = toMatcher(pass.filter(name => !name.includes('*')))
  const isMeant = toMatcher(pass.filter(name => name.includes('*')))
  const passed: [string, string][] = []
  const withheld: string[] = []
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue
    if (isNamed(name)) passed.push([name, value])
    else if (isHarmless(name)) passed.push([name, value.replace(userInfo, '$1')])
    else if (isMeant(name) && !tellsSecret(name, value)) passed.push([name, value])
    else withheld.push(name)
  }
  return { env: Object.freeze(Object.fromEntries(passed)), withheld: withheld.toSorted() }
}

function tellsSecret(name: string, value: string): boolean {
  if (name.startsWith('DSH_')) return true
  return (
    name
      .toUpperCase()
      .split(/[^A-Z0-9]+/)
      .some(word => secretWords.has(word)) || userInfo.test(value)
  )
}

function toMatcher(patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set(patterns.filter(pattern => !pattern.includes('*')))
  const others = patterns
    .filter(pattern => pattern.includes('*'))
    .map(pattern => new RegExp(`^${pattern.replace(/[^\w*]/g, '\\$&').replaceAll('*', '.*')}$`))
  return name => exact.has(name) || others.some(pattern => pattern.test(name))
}
