import { isFields, isText } from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'

const reasons = new Set<unknown>(['initial', 'resume', 'change'])
const defaultable = new Set(['reasoningEffort', 'maxTokens'])

/** What is wrong with the data of a 'request/header', undefined where nothing is. */
export function problemOfHeader(data: Fields): string | undefined {
  const { header, reason } = data
  if (!reasons.has(reason)) return `reason ${JSON.stringify(reason)} is not known`
  if (!isFields(header)) return 'header is missing'
  const { config, adapterDefaults, tools } = header
  if (!isFields(config) || !isText(config['provider']) || !isText(config['model'])) {
    return 'config of header has no provider and model'
  }
  const { reasoningEffort } = config
  if (reasoningEffort !== undefined && !isText(reasoningEffort)) {
    return 'reasoningEffort of header is not a non-empty string'
  }
  if (tools !== undefined && !Array.isArray(tools)) return 'tools of header is no list'
  return problemOfDefaults(adapterDefaults, config)
}

function problemOfDefaults(markers: unknown, config: Fields): string | undefined {
  if (markers === undefined) return undefined
  if (!isFields(markers)) return 'adapterDefaults of header is no record'
  for (const [key, marker] of Object.entries(markers)) {
    if (!defaultable.has(key) || marker !== true)
      return `adapterDefaults.${key} of header is not a known marker`
    if (config[key] === undefined) return `adapterDefaults.${key} of header marks nothing`
  }
  return undefined
}
