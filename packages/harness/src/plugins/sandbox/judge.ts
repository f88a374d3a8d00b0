import { protectedNames, signName } from './protected.ts'
import type { ConfinedArgv, RunnerFailureRule } from './service.ts'

export interface ConfinedEnd {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly stderr: string
  /** Where programs say there what went wrong; default: nothing of it counts. */
  readonly stdout?: string
  readonly confined: Pick<ConfinedArgv, 'denialSignatures' | 'networkSignatures' | 'runnerFailureRules'>
}

/** `held-names`: only that folders which hold protected names were not taken away. */
export type DeniedAccess = 'files' | 'network' | 'held-names'

export type ConfinedJudgement =
  | { readonly kind: 'runner-failed'; readonly line: string }
  | { readonly kind: 'denied'; readonly access: DeniedAccess }

/** Means nothing else, and stands in tests and logs less than the others. */
const sureRefusal = 'read-only file system'
const heldNames = protectedNames.map(name => `${name}/${signName}`)

/**
 * Whether a confined command failed for its confinement: first whether the runner itself failed, then whether something
 * was denied. Never of success, nor of a death by signal. A hint: programs print what they like.
 */
export function judgeConfined({
  exitCode,
  signal,
  stderr,
  stdout = '',
  confined,
}: ConfinedEnd): ConfinedJudgement | undefined {
  if (exitCode === null || exitCode === 0 || signal !== null) return undefined
  const lines = stderr.split(/\r?\n/)
  for (const rule of confined.runnerFailureRules) {
    const line = fatalLine(rule, exitCode, lines)
    if (line !== undefined) return { kind: 'runner-failed', line }
  }
  const access = deniedAccess(lines, stdout.split(/\r?\n/), confined)
  return access && { kind: 'denied', access }
}

function deniedAccess(
  stderr: readonly string[],
  stdout: readonly string[],
  { denialSignatures, networkSignatures = [] }: ConfinedEnd['confined'],
): DeniedAccess | undefined {
  // Who lacks both needs to ask for the network first, which is less.
  if ([...stderr, ...stdout].some(line => holds(line, networkSignatures))) return 'network'
  const refused = [
    ...stderr.filter(line => holds(line, denialSignatures)),
    ...stdout.filter(line => holds(line, [sureRefusal])),
  ]
  if (refused.length === 0) return undefined
  return refused.every(line => holds(line, heldNames)) ? 'held-names' : 'files'
}

function holds(line: string, parts: readonly string[]): boolean {
  const lower = line.toLowerCase()
  return parts.some(part => lower.includes(part.toLowerCase()))
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
