import { providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import { usageError } from '../errors.ts'
import { readLastModel } from '../run/last-model.ts'
import { chooseModel, demoRoute, keyVariable } from '../run/model.ts'
import type { ProviderEntry, Providers } from '../run/model.ts'
import type { CommandBody } from '../command.ts'
import type { Io } from '../io.ts'

interface Row {
  readonly provider: string
  readonly model: string
  readonly name: string
  readonly contextWindow?: number
  /** Whether it can be asked now. */
  readonly ready: boolean
  /** The variable that holds the key, or may hold it. */
  readonly keyEnv?: string
  readonly isDefault: boolean
}

/** Lists the known models without asking anyone. */
export const models: CommandBody = async ({ values, words }, io) => {
  if (words[0] !== undefined)
    throw usageError('UNEXPECTED_WORD', `dsh models takes no "${words[0]}"`, 'dsh models --help')
  const providers: Providers = providerCatalog
  const rows = await rowsOf(providers, io)
  if (values.json === true) for (const row of rows) io.out.line(JSON.stringify(row))
  else io.out.write(table(rows))
  return 0
}

async function rowsOf(providers: Providers, io: Io): Promise<Row[]> {
  const { env } = io
  const chosen = chooseModel({ env, providers, last: await readLastModel(io.home) })
  const isDefault = (provider: string, model: string): boolean =>
    provider === chosen.provider && model === chosen.model
  const listed = Object.entries(providers).flatMap(([provider, entry]) =>
    modelsOf(entry, provider === chosen.provider ? chosen.model : undefined).map(([model, facts]): Row => {
      const found = keyVariable(entry, env)
      const keyEnv = found ?? (entry.keyOptional === true ? undefined : entry.apiKeyEnv?.[0])
      const { name = entry.name, contextWindow } = facts
      return {
        provider,
        model,
        name,
        ...(contextWindow === undefined ? {} : { contextWindow }),
        ready: found !== undefined || entry.keyOptional === true,
        ...(keyEnv === undefined ? {} : { keyEnv }),
        isDefault: isDefault(provider, model),
      }
    }),
  )
  const { provider, model } = demoRoute
  const demo: Row = {
    provider,
    model,
    name: 'Demo, a script',
    ready: true,
    isDefault: isDefault(provider, model),
  }
  return [...listed, demo]
}

type Facts = { readonly name?: string; readonly contextWindow?: number }

/** With those that stand in no catalogue but are the default. */
function modelsOf({ models: known = {}, defaultModel }: ProviderEntry, chosen?: string): [string, Facts][] {
  const rows = Object.entries(known) as [string, Facts][]
  for (const model of new Set([defaultModel, chosen]))
    if (model !== undefined && !Object.hasOwn(known, model)) rows.push([model, {}])
  return rows.length === 0 ? [['MODEL', {}]] : rows
}

function table(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ provider, model }) => provider.length + model.length + 1))
  const nameWidth = Math.max(...rows.map(({ name }) => name.length))
  return rows
    .map(row => {
      const route = `${row.provider}/${row.model}`.padEnd(width)
      return `${route}  ${row.name.padEnd(nameWidth)}  ${stateOf(row)}${row.isDefault ? ', default' : ''}\n`
    })
    .join('')
}

function stateOf({ ready, keyEnv }: Row): string {
  if (keyEnv === undefined) return 'needs no key'
  return ready ? `key in ${keyEnv}` : `needs ${keyEnv}`
}
