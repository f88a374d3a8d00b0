import type { Context } from '../../kernel/index.ts'
import { judgeConfined } from '../sandbox/index.ts'
import type { ConfinedArgv, SandboxExecutionPolicy } from '../sandbox/index.ts'
import type { CapturedOutput, ProcessExit } from '../subprocess/index.ts'
import { BashError } from './errors.ts'
import type { BashSandboxFacts, BashSpec } from './service.ts'

type Argv = readonly [program: string, ...args: string[]]

/** A command line as it is started, and how what came of it is read. */
export interface Prepared {
  readonly argv: Argv
  readonly confined: { readonly by: ConfinedArgv; readonly policy: SandboxExecutionPolicy } | undefined
  /** The sandbox goes on after the command, and with it what that left running. */
  readonly isShared?: boolean
}

/** A runner says at the very beginning that it failed, and a refusal is mostly told at the end. */
const judgedBytes = 64 * 1024

/** Wraps `argv` where the policy of `spec` confines. Throws SANDBOX_UNAVAILABLE rather than run it with more access. */
export async function prepare(
  ctx: Context,
  argv: Argv,
  { policy }: Pick<BashSpec, 'policy'>,
): Promise<Prepared> {
  if (policy === undefined || policy.mode === 'full-access') return { argv, confined: undefined }
  const sandbox = ctx.get('sandbox')
  if (sandbox === undefined)
    throw new BashError(
      'SANDBOX_UNAVAILABLE',
      `no sandbox is here to run a command under ${policy.mode} mode; tell the user`,
    )
  const by = await sandbox.confine(argv, policy)
  return { argv: by.argv, confined: { by, policy } }
}

/**
 * What a confined command ran into. Throws SANDBOX_UNAVAILABLE where the runner failed and the command never ran.
 * Undefined for one that was not confined.
 */
export function judge(
  { confined }: Pick<Prepared, 'confined'>,
  exit: Pick<ProcessExit, 'exitCode' | 'signal'>,
  stderr: CapturedOutput,
): BashSandboxFacts | undefined {
  if (confined === undefined) return undefined
  const { by, policy } = confined
  const facts = { mode: policy.mode, network: policy.network, enforcement: by.enforcement }
  if (exit.exitCode === 0 || exit.exitCode === null) return { ...facts, denied: false }
  const judgement = judgeConfined({ ...exit, stderr: judgedText(stderr), confined: by })
  if (judgement?.kind === 'runner-failed')
    throw new BashError(
      'SANDBOX_UNAVAILABLE',
      `the sandbox failed, and the command did not run: ${judgement.line.trim()}`,
    )
  return { ...facts, denied: judgement !== undefined }
}

function judgedText(stderr: CapturedOutput): string {
  const { head, tail } = stderr.ends()
  const begin = Buffer.from(head.subarray(0, judgedBytes)).toString('utf8')
  if (head.length + tail.length <= judgedBytes) return begin + Buffer.from(tail).toString('utf8')
  const rest = tail.length > 0 ? tail : head.subarray(judgedBytes)
  return `${begin}\n${Buffer.from(rest.subarray(-judgedBytes)).toString('utf8')}`
}
