import { isFields, isText, MAX_TIMER_DELAY_MS, nearest } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import type { ProviderConfig } from './config.ts'
import { plainQuirks } from './quirks.ts'
import type { Quirks } from './quirks.ts'

/** Told of each field that is not as it should be. */
export type Complain = (provider: string, problem: string) => void

const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const isDelay = (value: unknown): boolean =>
  typeof value === 'number' && value > 0 && value <= MAX_TIMER_DELAY_MS
const isTextList = (value: unknown): boolean => Array.isArray(value) && value.every(isText)
const isHeaders = (value: unknown): boolean =>
  isFields(value) && Object.values(value).every(text => typeof text === 'string' && !/[\r\n\0]/.test(text))

const fieldChecks: Readonly<Record<keyof ProviderConfig, (value: unknown) => boolean>> = {
  name: isText,
  like: isText,
  baseURL: value => ['http:', 'https:'].includes(URL.parse(String(value))?.protocol ?? ''),
  apiKey: value => typeof value === 'string',
  apiKeyEnv: value => isText(value) || isTextList(value),
  keyOptional: isFlag,
  headers: isHeaders,
  idleTimeoutMs: isDelay,
  connectTimeoutMs: isDelay,
  quirks: isFields,
  models: value => isTextList(value) || (isFields(value) && Object.values(value).every(isFields)),
  otherModels: isFields,
  defaultModel: isText,
  body: isFields,
  retry: isFields,
}

const reservedBody = ['model', 'messages', 'tools', 'stream']

/** The fields that are as they should be; a bad one is told to `complain` and counts as absent. */
export function checkedFields(id: string, given: Fields, complain: Complain): ProviderConfig {
  const config: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue
    const check = Object.hasOwn(fieldChecks, field) ? fieldChecks[field as keyof ProviderConfig] : undefined
    if (check === undefined) complain(id, unknownField(id, field, Object.keys(fieldChecks)))
    else if (check(value)) config[field] = value
    else
      complain(
        id,
        `${field} of provider "${id}" is not usable${field === 'apiKey' ? '' : `: ${shown(value)}`}`,
      )
  }
  if (isFields(config['quirks'])) config['quirks'] = checkedQuirks(id, config['quirks'], complain)
  if (isFields(config['body'])) config['body'] = checkedBody(id, config['body'], complain)
  return config
}

function checkedQuirks(id: string, given: Fields, complain: Complain): Partial<Quirks> {
  const quirks: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(plainQuirks, key)) complain(id, unknownField(id, key, Object.keys(plainQuirks)))
    else if (isQuirkValue(key as keyof Quirks, value)) quirks[key] = value
    else complain(id, `quirk ${key} of provider "${id}" is not usable: ${shown(value)}`)
  }
  return quirks
}

const quirkWords: Partial<Record<keyof Quirks, readonly unknown[]>> = {
  systemRole: ['system', 'developer'],
  reasoningReplay: ['never', 'with-tool-calls'],
  reasoningReplayField: ['reasoning_content', 'reasoning'],
  thinkingStyle: ['none', 'effort', 'deepseek', 'switch', 'enable-thinking', 'object'],
  maxTokensField: ['max_tokens', 'max_completion_tokens'],
  temperature: ['always', 'not-while-thinking', 'never'],
  emptyContent: [null, ''],
}

function isQuirkValue(key: keyof Quirks, value: unknown): boolean {
  const words = quirkWords[key]
  if (words) return words.includes(value)
  if (key === 'reasoningFields') return isTextList(value)
  return key === 'maxCallIdLength' ? Number.isInteger(value) && Number(value) >= 32 : isFlag(value)
}

function checkedBody(id: string, given: Fields, complain: Complain): Fields {
  const kept = Object.entries(given).filter(([field]) => {
    const isReserved = reservedBody.includes(field)
    if (isReserved) complain(id, `body of provider "${id}" cannot set "${field}"`)
    return !isReserved
  })
  return Object.fromEntries(kept)
}

function unknownField(id: string, field: string, known: readonly string[]): string {
  return `provider "${id}" has no setting "${field}"${nearest(field, known)}`
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? typeof value
}
