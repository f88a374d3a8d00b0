import { cutText } from '../../core/tools/index.ts'
import type { RunnerFailureRule } from '../sandbox/index.ts'
import type { ProcessExit } from '../subprocess/index.ts'
import { cpuLimitExitCode } from './limits.ts'
import type { CodeResult } from './service.ts'

/** How a failure of what confines the program shows. */
export interface Runner {
  readonly failureRules: readonly RunnerFailureRule[]
}

interface ExitFacts {
  readonly stderr: string
  readonly limits: { readonly cpuSeconds: number; readonly memoryMb: number }
  readonly runner: Runner | undefined
  /** Whether the program's process came as far as to say so. */
  readonly hasBooted: boolean
}

const shownErrorBytes = 2000

/** Why a process ended that did not say that its program was done. */
export function describeExit(exit: ProcessExit, facts: ExitFacts): NonNullable<CodeResult['error']> {
  const { exitCode, signal } = exit
  const { stderr, limits, hasBooted } = facts
  if (signal === 'SIGXCPU' || exitCode === cpuLimitExitCode) {
    const message = `the program used more than ${limits.cpuSeconds} s of processor time`
    return { kind: 'timeout', message }
  }
  const how = signal === null ? `with exit code ${exitCode}` : `by ${signal}`
  if (stderr.includes('heap out of memory'))
    return exited(`the program used more than ${limits.memoryMb} MiB of memory`)
  if (hasBooted) return exited(`the program's process ended ${how}`, stderr)
  const refusal = runnerFailure(exit, facts)
  if (refusal !== undefined) return exited(`the sandbox could not be started: ${refusal}`)
  return exited(`the program could not be started: its process ended ${how}`, stderr)
}

function exited(message: string, stderr = ''): NonNullable<CodeResult['error']> {
  const text = cutText(stderr.trim(), shownErrorBytes, { keep: 'ends' })
  return { kind: 'worker-exit', message: text === '' ? message : `${message}\n${text}` }
}

/** The line by which a runner says that it failed. */
function runnerFailure({ exitCode }: ProcessExit, { stderr, runner }: ExitFacts): string | undefined {
  if (runner === undefined || exitCode === 0 || exitCode === null) return undefined
  const lines = stderr.split('\n').map(line => line.trim())
  for (const { exitCodes, fatalSignatures, informationalLines = [] } of runner.failureRules) {
    if (exitCodes?.includes(exitCode) === false) continue
    const ignored = informationalLines.map(line => line.toLowerCase())
    const found = lines.find(line => {
      const lower = line.toLowerCase()
      return !ignored.includes(lower) && fatalSignatures.some(part => lower.includes(part.toLowerCase()))
    })
    if (found !== undefined) return found
  }
  return undefined
}
