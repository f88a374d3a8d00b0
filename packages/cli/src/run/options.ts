import { sandboxModes } from '@dsh/harness/plugins/sandbox'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import { nearest } from '@dsh/harness/kernel'
import type { RunLimits } from '@dsh/harness/presets/headless'
import { countOption } from '../count-option.ts'
import { usageError } from '../errors.ts'
import type { Arguments } from '../command.ts'

export interface RunOptions {
  readonly model?: string
  readonly directory?: string
  /** Go on with a stored session: this one, or the newest of the folder. */
  readonly resume?: { readonly id: string } | 'newest'
  /** Absent = as the session says, or workspace-write. */
  readonly permission?: SandboxMode
  readonly yes: boolean
  readonly json: boolean
  /** A file name. */
  readonly schema?: string
  readonly limits: RunLimits
}

/** Throws a usage error for values that mean nothing. */
export function runOptions({ values }: Arguments): RunOptions {
  const { model, directory, resume, permission, schema } = values as Record<string, string | undefined>
  if (values.continue === true && resume !== undefined)
    throw usageError(
      'OPTION_CONFLICT',
      '-c and -r name two sessions, give one of them',
      `dsh run -r ${resume} …`,
    )
  return {
    yes: values.yes === true,
    json: values.json === true,
    ...(model === undefined ? {} : { model }),
    ...(permission === undefined ? {} : { permission: toMode(permission) }),
    ...(directory === undefined ? {} : { directory }),
    ...(resume === undefined ? {} : { resume: { id: resume } }),
    ...(values.continue === true ? { resume: 'newest' } : {}),
    ...(schema === undefined ? {} : { schema }),
    limits: limitsIn(values),
  }
}

function limitsIn(values: Arguments['values']): RunLimits {
  const maxTokens = countOption('max-tokens', values['max-tokens'], 'dsh run --max-tokens 200000 …')
  const maxSteps = countOption('max-turns', values['max-turns'], 'dsh run --max-turns 20 …')
  const maxCost = amountOption('max-cost', values['max-cost'], 'dsh run --max-cost 0.50 …')
  const maxSeconds = amountOption('max-time', values['max-time'], 'dsh run --max-time 600 …')
  return {
    ...(maxCost === undefined ? {} : { maxCost }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(maxSeconds === undefined ? {} : { maxSeconds }),
  }
}

/** What a timer can wait for. */
const mostSeconds = 2_000_000

function amountOption(name: string, value: string | boolean | undefined, fix: string): number | undefined {
  if (value === undefined) return undefined
  const amount = Number(value)
  if (amount > 0 && amount <= mostSeconds) return amount
  throw usageError(
    'INVALID_NUMBER',
    `--${name} is a number above 0 and up to ${mostSeconds}, found "${String(value)}"`,
    fix,
  )
}

function toMode(word: string): SandboxMode {
  const mode = sandboxModes.find(known => known === word)
  if (mode !== undefined) return mode
  throw usageError(
    'UNKNOWN_PERMISSION',
    `there is no permission "${word}"${nearest(word, sandboxModes)}`,
    `dsh run --permission ${sandboxModes.join('|')} …`,
  )
}
