import { checkKey, providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import type { ProviderFacts } from '@dsh/harness/plugins/llm-openai-chat'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

type Environment = Place['env']

/** How keys of a host begin. */
const beginnings: Readonly<Record<string, string>> = {
  deepseek: 'sk-',
  openai: 'sk-',
  openrouter: 'sk-or-',
  qwen: 'sk-',
  kimi: 'sk-',
}
/** Beginnings that only keys of one other host have. */
const marks: readonly (readonly [beginning: string, host: string])[] = [
  ['sk-or-', 'OpenRouter'],
  ['sk-ant-', 'Anthropic'],
  ['sk-proj-', 'OpenAI'],
  ['gsk_', 'Groq'],
  ['AIza', 'Google'],
  ['hf_', 'Hugging Face'],
  ['ghp_', 'GitHub'],
]
const placeholder =
  /^(?:x{3,}|\.{3}|<.*>|(?:sk-)?(?:your|my|the)?[-_]?(?:api)?[-_]?key(?:[-_]?here)?|sk-x+|sk-\.+|change-?me|todo)$/i

/** Which keys there are, and whether they have the form of one. Says nothing of what they are. */
export async function lookAtKeys({ env }: Place): Promise<Findings> {
  const found = Object.entries(providerCatalog).flatMap(([id, facts]) => keysOf(id, facts, env))
  const { apiKeyEnv = [], keysURL } = providerCatalog['deepseek'] ?? {}
  const hasUsable = found.some(({ state, code }) => state === 'ok' || code === 'KEY_PADDED')
  if (hasUsable || found.some(({ state }) => state === 'problem')) return found
  const fix = `export ${apiKeyEnv[0]}='…'   # from ${keysURL}`
  return [...found, note('NO_KEY', 'no provider has a key; the built-in demo needs none', fix)]
}

function keysOf(id: string, facts: ProviderFacts, env: Environment): Findings {
  const set = (facts.apiKeyEnv ?? []).filter(name => env[name] !== undefined)
  const [used, ...others] = set.filter(name => env[name]?.trim() !== '')
  return [
    ...set
      .filter(name => env[name]?.trim() === '')
      .map(name => note('KEY_EMPTY', `${name} is set and empty`, `unset ${name}`)),
    ...(used === undefined ? [] : [judgeKey(id, facts, { variable: used, env })]),
    ...others
      .filter(name => env[name]?.trim() !== env[used ?? '']?.trim())
      .map(name =>
        note('KEY_PASSED_OVER', `${name} is passed over: ${used} holds a key too`, `unset ${name}`),
      ),
  ]
}

interface Held {
  readonly variable: string
  readonly env: Environment
}

function judgeKey(id: string, facts: ProviderFacts, { variable, env }: Held): Findings[number] {
  const raw = env[variable] ?? ''
  const key = raw.trim()
  const fault = faultOf(key) ?? (hasOwnAddress(facts, env) ? undefined : strangeness(id, facts, key))
  if (fault !== undefined) {
    const where = facts.keysURL === undefined ? '' : `   # from ${facts.keysURL}`
    return problem(fault[0], `${facts.name} · ${variable}: ${fault[1]}`, `export ${variable}='…'${where}`)
  }
  if (raw !== key)
    return note(
      'KEY_PADDED',
      `${facts.name} · ${variable} has blanks or a line break around it, which are left out`,
    )
  return ok(`${facts.name} · ${variable} has the form of a key`, 'KEY_PRESENT')
}

type Fault = readonly [code: string, text: string]

function faultOf(key: string): Fault | undefined {
  if (/^["'`“”‘’].*["'`“”‘’]$/s.test(key)) return ['KEY_QUOTED', 'quotes are part of the value']
  if (/^bearer\s/i.test(key)) return ['KEY_WITH_SCHEME', 'it begins with "Bearer", which is added by itself']
  if (placeholder.test(key)) return ['KEY_PLACEHOLDER', 'it holds a placeholder']
  const { problem: fault } = checkKey(key)
  return fault === undefined ? undefined : ['KEY_UNUSABLE', fault]
}

function strangeness(id: string, { name }: ProviderFacts, key: string): Fault | undefined {
  const beginning = beginnings[id]
  const [, host] = marks.find(([mark]) => key.startsWith(mark)) ?? []
  const isOwn = beginning !== undefined && key.startsWith(beginning) && host === undefined
  if (isOwn || host?.startsWith(name) === true) return undefined
  if (host !== undefined) return ['KEY_OF_ANOTHER', `it begins as keys of ${host} do`]
  return beginning === undefined
    ? undefined
    : ['KEY_PREFIX', `it does not begin with ${beginning} as keys of ${name} do`]
}

/** Whoever answers there may have keys of any form. */
function hasOwnAddress({ baseURLEnv }: ProviderFacts, env: Environment): boolean {
  return baseURLEnv !== undefined && (env[baseURLEnv] ?? '').trim() !== ''
}
