import { nearest } from '@dsh/harness/kernel'
import { checkKey } from '@dsh/harness/plugins/llm-openai-chat'
import { CliError, exitCode, usageError } from '../errors.ts'

/** A model on the route of one provider. */
export interface ModelRoute {
  readonly provider: string
  readonly model: string
}

/** What must be known of a provider to choose it. */
export interface ProviderEntry {
  readonly name: string
  /** Variables that may hold its key; the first that is set counts. */
  readonly apiKeyEnv?: readonly string[]
  /** A host of one's own, which asks for no key. */
  readonly keyOptional?: boolean
  readonly defaultModel?: string
  readonly models?: Readonly<Record<string, object>>
  readonly keysURL?: string
}

export type Providers = Readonly<Record<string, ProviderEntry>>

type Environment = Readonly<Record<string, string | undefined>>

export interface ModelQuestion {
  /** What `-m` says. */
  readonly asked?: string | undefined
  /** What the session that goes on used last. */
  readonly session?: ModelRoute | undefined
  /** What was chosen by `-m` before. */
  readonly last?: ModelRoute | undefined
  readonly env: Environment
  /** In the order in which keys are looked for. */
  readonly providers: Providers
}

export interface ModelChoice extends ModelRoute {
  readonly reason: 'asked' | 'session' | 'last' | 'key' | 'demo'
  /** The variable that holds the key. */
  readonly keyEnv?: string
}

export const demoRoute: ModelRoute = { provider: 'demo', model: 'demo' }

/**
 * What was asked for, else the session's own model, else the last one asked for, else that of the first key found, else
 * the demo. Throws a usage error for a model nobody serves, and one of credentials where its key is missing.
 */
export function chooseModel(question: ModelQuestion): ModelChoice {
  const { asked, session, last, env, providers } = question
  if (asked !== undefined) return withKey(parseRoute(asked, providers), 'asked', question)
  if (session !== undefined) return withKey(session, 'session', question)
  if (last !== undefined && hasKey(last.provider, question)) return withKey(last, 'last', question)
  for (const [provider, entry] of Object.entries(providers)) {
    const keyEnv = keyVariable(entry, env)
    if (keyEnv === undefined || entry.defaultModel === undefined) continue
    return withKey({ provider, model: entry.defaultModel }, 'key', question)
  }
  return { ...demoRoute, reason: 'demo' }
}

/** The variable that holds a key of `entry`. */
export function keyVariable({ apiKeyEnv = [] }: ProviderEntry, env: Environment): string | undefined {
  return apiKeyEnv.find(name => (env[name] ?? '').trim() !== '')
}

/** `text` as a model of a provider that is known. */
function parseRoute(text: string, providers: Providers): ModelRoute {
  const slash = text.indexOf('/')
  const provider = slash === -1 ? text : text.slice(0, slash)
  const model = text.slice(slash + 1)
  if (slash === -1 || model === '' || provider === '') throw noRoute(text, providers)
  if (provider === demoRoute.provider) return demoModel(model)
  if (Object.hasOwn(providers, provider)) return { provider, model }
  const hint = nearest(provider, [...Object.keys(providers), demoRoute.provider])
  throw usageError(
    'UNKNOWN_MODEL',
    `there is no provider "${provider}" for the model "${text}"${hint}`,
    'dsh models',
  )
}

function demoModel(model: string): ModelRoute {
  if (model === demoRoute.model) return demoRoute
  throw usageError('UNKNOWN_MODEL', `the demo has no model "${model}"`, 'dsh run -m demo/demo …')
}

/** A name without its provider: the routes it could mean. */
function noRoute(text: string, providers: Providers): Error {
  const word = text.replaceAll('/', '')
  const own = Object.hasOwn(providers, word) ? providers[word]?.defaultModel : undefined
  const hosts = Object.entries(providers).filter(([, { models = {} }]) => Object.hasOwn(models, word))
  const routes = [
    ...(own === undefined ? [] : [`${word}/${own}`]),
    ...hosts.map(([host]) => `${host}/${word}`),
  ]
  const [first = 'PROVIDER/MODEL'] = routes
  return usageError('UNKNOWN_MODEL', `"${text}" is no PROVIDER/MODEL`, `dsh run -m ${first} …`)
}

function hasKey(provider: string, { env, providers }: ModelQuestion): boolean {
  const entry = Object.hasOwn(providers, provider) ? providers[provider] : undefined
  return entry !== undefined && (entry.keyOptional === true || keyVariable(entry, env) !== undefined)
}

function withKey(
  route: ModelRoute,
  reason: ModelChoice['reason'],
  { env, providers }: ModelQuestion,
): ModelChoice {
  const { provider, model } = route
  if (provider === demoRoute.provider) return { ...route, reason }
  const entry = Object.hasOwn(providers, provider) ? providers[provider] : undefined
  if (entry === undefined)
    throw usageError('UNKNOWN_MODEL', `there is no provider "${provider}" any more`, 'dsh models')
  const keyEnv = keyVariable(entry, env)
  if (keyEnv === undefined) {
    if (entry.keyOptional === true) return { provider, model, reason }
    throw missingKey(route, entry)
  }
  assertUsable(keyEnv, env[keyEnv] ?? '')
  return { provider, model, reason, keyEnv }
}

function missingKey(
  { provider, model }: ModelRoute,
  { name, apiKeyEnv = [], keysURL }: ProviderEntry,
): Error {
  const variables = apiKeyEnv.join(' or ')
  const where = keysURL === undefined ? '' : `   # from ${keysURL}`
  return new CliError(
    'MISSING_CREDENTIAL',
    `${provider}/${model} needs a key of ${name}, and ${variables} is not set`,
    { exitCode: exitCode.noCredential, fix: `export ${apiKeyEnv[0]}='…'${where}` },
  )
}

/** Never says what the key is. */
function assertUsable(variable: string, key: string): void {
  const { problem } = checkKey(key)
  if (problem === undefined) return
  throw new CliError('INVALID_CREDENTIAL', `the key in ${variable} cannot be used: ${problem}`, {
    exitCode: exitCode.noCredential,
    fix: `export ${variable}='…'`,
  })
}
