import { proxyFor, providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import type { ProviderFacts } from '@dsh/harness/plugins/llm-openai-chat'
import { messageOf } from '@dsh/harness/kernel'
import { keyVariable } from '../run/model.ts'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** The way to each host that has a key. Nobody is asked. */
export async function lookAtNetwork({ env }: Place): Promise<Findings> {
  const hosts = Object.values(providerCatalog).filter(facts => keyVariable(facts, env) !== undefined)
  const found = [
    ...hosts.map(facts => wayTo(facts, env)),
    ...rangesPassedOver(env),
    ...(env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0'
      ? [note('TLS_UNCHECKED', 'certificates are not checked', 'unset NODE_TLS_REJECT_UNAUTHORIZED')]
      : []),
  ]
  return found.length > 0 ? found : [ok('no host has a key')]
}

/** Only names and ports are told: an address may hold a password. */
function wayTo({ name, baseURL, baseURLEnv }: ProviderFacts, env: Place['env']): Findings[number] {
  const own = baseURLEnv === undefined ? '' : (env[baseURLEnv] ?? '').trim()
  const target = URL.parse(own === '' ? baseURL : own)
  if (target === null || !/^https?:$/.test(target.protocol))
    return problem(
      'BASE_URL_INVALID',
      `${name} · ${baseURLEnv} is no http or https URL`,
      `unset ${baseURLEnv}`,
    )
  const place = own === '' ? target.host : `${target.host} (${baseURLEnv})`
  try {
    const proxy = proxyFor(target, variable => env[variable])
    return proxy === undefined
      ? ok(`${name} · ${place}, directly`)
      : note('PROXY', `${name} · ${place} through the proxy ${proxy.host}`)
  } catch (error) {
    const message = messageOf(error)
    const [variable = 'HTTPS_PROXY'] = message.split(' ')
    return problem('PROXY_UNUSABLE', `${name} · ${message}`, `export ${variable}=http://HOST:PORT`)
  }
}

function rangesPassedOver(env: Place['env']): Findings {
  const list = env['no_proxy'] ?? env['NO_PROXY'] ?? ''
  const ranges = list.split(/[\s,]+/).filter(entry => /^[\da-f.:]+\/\d+$/i.test(entry))
  return ranges.length === 0
    ? []
    : [
        note(
          'NO_PROXY_RANGE',
          `NO_PROXY: ${ranges.join(', ')} is passed over, only names and addresses count`,
        ),
      ]
}
