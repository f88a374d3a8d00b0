import type { Context } from '../../kernel/index.ts'
import { judgeConfined } from '../sandbox/index.ts'
import type { ConfinedArgv, ConfinedJudgement, SandboxExecutionPolicy } from '../sandbox/index.ts'
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

/** Of a command that sends its errors where its output goes. */
const mergesOutputs = />&|&>|\|&/

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

/** How a command ended; `cause` is why it was ended before it was done. */
export interface CommandEnd {
  readonly exit: Pick<ProcessExit, 'exitCode' | 'signal'>
  readonly cause: 'timeout' | 'abort' | undefined
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
}

/**
 * What a confined command ran into. Throws SANDBOX_UNAVAILABLE where the runner failed and the command never ran.
 * Undefined for one that was not confined.
 */
export function judge(
  { confined }: Pick<Prepared, 'confined'>,
  command: string,
  end: CommandEnd,
): BashSandboxFacts | undefined {
  if (confined === undefined) return undefined
  const { by, policy } = confined
  const facts = { mode: policy.mode, network: policy.network, enforcement: by.enforcement }
  const judgement = judgementOf(by, command, end)
  if (judgement?.kind === 'runner-failed')
    throw new BashError(
      'SANDBOX_UNAVAILABLE',
      `the sandbox failed, and the command did not run: ${judgement.line.trim()}`,
    )
  if (judgement === undefined) return { ...facts, denied: false }
  const { access } = judgement
  const reason = access === 'files' ? policy.noWorkspace : undefined
  return { ...facts, denied: true, access, ...(reason !== undefined && { reason }) }
}

function judgementOf(
  confined: ConfinedArgv,
  command: string,
  { exit, cause, stdout, stderr }: CommandEnd,
): ConfinedJudgement | undefined {
  if (cause === 'abort' || (cause === undefined && (exit.exitCode === 0 || exit.exitCode === null)))
    return undefined
  const [out, err] = [judgedText(stdout), judgedText(stderr)]
  const said = mergesOutputs.test(command) ? { stderr: `${err}\n${out}` } : { stderr: err, stdout: out }
  if (cause === undefined) return judgeConfined({ ...exit, ...said, confined })
  // Many a program tries for minutes to reach what it cannot.
  const ofNetwork = { ...confined, denialSignatures: [], runnerFailureRules: [] }
  return judgeConfined({ exitCode: 1, signal: null, ...said, confined: ofNetwork })
}

function judgedText(stderr: CapturedOutput): string {
  const { head, tail } = stderr.ends()
  const begin = Buffer.from(head.subarray(0, judgedBytes)).toString('utf8')
  if (head.length + tail.length <= judgedBytes) return begin + Buffer.from(tail).toString('utf8')
  const rest = tail.length > 0 ? tail : head.subarray(judgedBytes)
  return `${begin}\n${Buffer.from(rest.subarray(-judgedBytes)).toString('utf8')}`
}
