import { sandboxModes } from '@dsh/harness/plugins/sandbox'
import type { SandboxMode } from '@dsh/harness/plugins/sandbox'
import { nearest } from '@dsh/harness/kernel'
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
  }
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
