import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { providerCatalog } from '@dsh/harness/plugins/llm-openai-chat'
import { reportOf } from '../report-error.ts'
import { readLastModel } from '../run/last-model.ts'
import { chooseModel, demoRoute } from '../run/model.ts'
import type { ModelChoice } from '../run/model.ts'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** Which model a run without `-m` asks. */
export async function lookAtDefaultModel({ env, home, command }: Place): Promise<Findings> {
  const last = await readLastModel(home)
  const choose = `${command} run -m PROVIDER/MODEL …`
  const path = join(home, 'default-model.json')
  const isLost = last === undefined && (await stat(path).catch(() => undefined)) !== undefined
  const lost = isLost
    ? [note('DEFAULT_MODEL_UNREADABLE', `${path} is passed over: it names no model`, choose)]
    : []
  try {
    const choice = chooseModel({ env, providers: providerCatalog, last })
    const isDemo = last?.provider === demoRoute.provider && choice.provider === demoRoute.provider
    const passedOver =
      last === undefined || choice.reason === 'last' || isDemo
        ? []
        : [
            note(
              'DEFAULT_MODEL_PASSED_OVER',
              `${last.provider}/${last.model} was asked last and has no key now`,
              choose,
            ),
          ]
    return [...lost, ...passedOver, ok(`${choice.provider}/${choice.model} (${reasonOf(choice)})`)]
  } catch (error) {
    const { code, message, fix } = reportOf(error)
    return [...lost, problem(code, message, fix ?? choose)]
  }
}

function reasonOf({ reason, keyEnv }: ModelChoice): string {
  if (reason === 'last') return 'the last one asked for'
  return keyEnv === undefined ? 'no key is needed' : `key in ${keyEnv}`
}
