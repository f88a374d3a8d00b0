import { cutText } from '../../core/tools/index.ts'
import { judgeConfined } from '../sandbox/index.ts'
import type { ConfinedArgv } from '../sandbox/index.ts'
import type { ProcessExit } from '../subprocess/index.ts'
import { cpuLimitExitCode } from './limits.ts'
import type { CodeResult } from './service.ts'

interface ExitFacts {
  readonly stderr: string
  readonly limits: { readonly cpuSeconds: number; readonly memoryMb: number }
  /** Absent where nothing confined it. */
  readonly confined: ConfinedArgv | undefined
  /** Whether the program's process came as far as to say so. */
  readonly hasBooted: boolean
}

const shownErrorBytes = 2000

/** Why a process ended that did not say that its program was done. */
export function describeExit(exit: ProcessExit, facts: ExitFacts): NonNullable<CodeResult['error']> {
  const { exitCode, signal } = exit
  const { stderr, limits, confined, hasBooted } = facts
  if (signal === 'SIGXCPU' || exitCode === cpuLimitExitCode) {
    const message = `the program used more than ${limits.cpuSeconds} s of processor time`
    return { kind: 'timeout', message }
  }
  const how = signal === null ? `with exit code ${exitCode}` : `by ${signal}`
  if (stderr.includes('heap out of memory'))
    return exited(`the program used more than ${limits.memoryMb} MiB of memory`)
  if (hasBooted) return exited(`the program's process ended ${how}`, stderr)
  const judgement = confined && judgeConfined({ ...exit, stderr, confined })
  if (judgement?.kind === 'runner-failed')
    return exited(`the sandbox failed, and the program did not run: ${judgement.line.trim()}`)
  return exited(`the program could not be started: its process ended ${how}`, stderr)
}

function exited(message: string, stderr = ''): NonNullable<CodeResult['error']> {
  const text = cutText(stderr.trim(), shownErrorBytes, { keep: 'ends' })
  return { kind: 'worker-exit', message: text === '' ? message : `${message}\n${text}` }
}
