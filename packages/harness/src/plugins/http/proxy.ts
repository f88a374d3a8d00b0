/** Reads one variable of the caller's environment. */
export type ReadEnv = (name: string) => string | undefined

/**
 * The proxy through which `target` is reached, or undefined for a direct connection.
 *
 * Reads HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, small letters first. NO_PROXY lists hosts, which cover their
 * subdomains, with an optional port; `*` covers all. Loopback never goes through a proxy. Address ranges (CIDR) in
 * NO_PROXY are not understood. Throws a TypeError for a proxy that is no http or https URL.
 */
export function proxyFor(target: URL, env: ReadEnv): URL | undefined {
  if (isLoopback(target.hostname)) return undefined
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const [variable, value] = firstSet(env, [name, 'ALL_PROXY'])
  if (value === undefined || isExempt(target, firstSet(env, ['NO_PROXY'])[1] ?? '')) return undefined
  const proxy = URL.parse(value.includes('://') ? value : `http://${value}`)
  if (proxy?.protocol === 'http:' || proxy?.protocol === 'https:') return proxy
  throw new TypeError(`${variable} is no http or https URL; a proxy of another kind cannot be used`)
}

function firstSet(env: ReadEnv, names: readonly string[]): [name: string, value: string | undefined] {
  for (const name of names) {
    for (const spelling of [name.toLowerCase(), name]) {
      const value = env(spelling)?.trim()
      if (value !== undefined && value !== '') return [spelling, value]
    }
  }
  return ['', undefined]
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host.startsWith('127.')
}

function isExempt(target: URL, list: string): boolean {
  const host = target.hostname.toLowerCase()
  const port = target.port === '' ? (target.protocol === 'https:' ? '443' : '80') : target.port
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(entry => entry !== '')
    .some(entry => {
      if (entry === '*') return true
      const [, name = '', entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? []
      if (entryPort !== undefined && entryPort !== port) return false
      const domain = name.replace(/^\*?\./, '')
      return host === domain || host.endsWith(`.${domain}`)
    })
}
