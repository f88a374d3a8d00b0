import { readFile } from 'node:fs/promises'
import { messageOf } from '../../kernel/index.ts'
import { proxyFor } from '../http/index.ts'
import type { ServiceGround } from './ask-json.ts'
import type { Environment, WebConfig } from './config.ts'
import { WebError } from './errors.ts'
import type { Web, WebFetchProvider } from './service.ts'
import type { Route } from './wire.ts'

/** Registers the providers that `config` names; their code is loaded with their first use. */
export function registerProviders(web: Web, config: WebConfig): void {
  const { env, deepseek } = config
  const ground: ServiceGround = { routeTo: url => routeTo(url, env), readCa: () => readCa(config.ca) }
  if (config.fetch) web.registerFetchProvider(httpProvider(config, ground))
  if (deepseek !== false) {
    const { apiKeyEnv } = deepseek
    web.registerSearchProvider({
      id: 'deepseek',
      hint: `set ${apiKeyEnv}`,
      available: () => isSet(env, apiKeyEnv),
      async search(request, signal) {
        const { searchDeepSeek } = await import('./deepseek-search.ts')
        const baseURL = deepseek.baseURL ?? messagesBase(env)
        const search = { config: deepseek, baseURL, key: env[apiKeyEnv] }
        return await searchDeepSeek(search, request, { ground, signal })
      },
    })
  }
  for (const [id, service] of Object.entries(config.json)) {
    const { apiKeyEnv } = service
    web.registerSearchProvider({
      id,
      ...(apiKeyEnv !== undefined && { hint: `set ${apiKeyEnv}` }),
      available: () => apiKeyEnv === undefined || isSet(env, apiKeyEnv),
      async search(request, signal) {
        const { searchJson } = await import('./json-search.ts')
        const key = apiKeyEnv === undefined ? undefined : env[apiKeyEnv]
        return await searchJson({ id, config: service, key }, request, { ground, signal })
      },
    })
  }
}

function httpProvider(config: WebConfig, { readCa: read }: ServiceGround): WebFetchProvider {
  let loaded: Promise<WebFetchProvider> | undefined
  const load = async (): Promise<WebFetchProvider> => {
    const { HttpFetch } = await import('./fetch.ts')
    const { fetchTimeoutMs: timeoutMs, env } = config
    return new HttpFetch({ ...config, timeoutMs }, { env: name => env[name], readCa: read })
  }
  return {
    id: 'http',
    available: () => true,
    async fetch(request, signal) {
      loaded ??= load()
      return await (await loaded).fetch(request, signal)
    },
  }
}

/** A service that a person configured is reached wherever it is. */
function routeTo(url: URL, env: Environment): Route {
  try {
    const proxy = proxyFor(url, name => env[name])
    if (proxy === undefined) return { kind: 'direct' }
    return { kind: 'proxy', proxy, host: url.hostname.replace(/^\[|\]$/g, '') }
  } catch (cause) {
    throw new WebError('WEB_PROVIDER_ERROR', messageOf(cause), { cause })
  }
}

async function readCa(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    throw new WebError('WEB_PROVIDER_ERROR', `ca of web cannot be read: ${messageOf(cause)}`, { cause })
  }
}

function messagesBase(env: Environment): string {
  const base = env['DEEPSEEK_BASE_URL']?.trim() || 'https://api.deepseek.com'
  return `${base.replace(/\/+$/, '').replace(/\/v1$/, '')}/anthropic`
}

function isSet(env: Environment, name: string): boolean {
  return (env[name] ?? '').trim() !== ''
}
