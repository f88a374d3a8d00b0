import type { ConfinedArgv, RunnerFailureRule } from './service.ts'

export interface ConfinedEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly stderr: string
  readonly confined: Pick<ConfinedArgv, 'denialSignatures' | 'runnerFailureRules'>
}

export type ConfinedJudgement =
  | { readonly kind: 'runner-failed'; readonly line: string }
  | { readonly kind: 'denied' }

/**
 * Whether a confined command failed for its confinement: first whether the runner itself failed, then whether something
 * was denied. Never of success, nor of a death by signal. A hint: programs print what they like.
 */
export function judgeConfined({
  exitCode,
  signal,
  stderr,
  confined,
}: ConfinedEnd): ConfinedJudgement | undefined {
  if (exitCode === null || exitCode === 0 || signal !== null) return undefined
  const lines = stderr.split(/\r?\n/)
  for (const rule of confined.runnerFailureRules) {
    const line = fatalLine(rule, exitCode, lines)
    if (line !== undefined) return { kind: 'runner-failed', line }
  }
  const text = stderr.toLowerCase()
  const isDenied = confined.denialSignatures.some(part => text.includes(part.toLowerCase()))
  return isDenied ? { kind: 'denied' } : undefined
}

function fatalLine(
  { exitCodes, fatalSignatures, informationalLines = [] }: RunnerFailureRule,
  exitCode: number,
  lines: readonly string[],
): string | undefined {
  if (exitCodes !== undefined && !exitCodes.includes(exitCode)) return undefined
  const harmless = new Set(informationalLines.map(line => line.toLowerCase()))
  const signatures = fatalSignatures.map(part => part.toLowerCase()).filter(part => part.trim() !== '')
  return lines.find(line => {
    const lower = line.toLowerCase()
    return !harmless.has(lower) && signatures.some(part => lower.includes(part))
  })
}
