import type { TokenUsage, TurnEndReason } from '@dsh/protocol'
import { exitCode } from '../errors.ts'
import { endOf } from '../lines.ts'
import { grouped, inert, oneLine } from '../text.ts'

/** How a run ended, before it is told. */
export interface RunFacts {
  readonly sessionId: string
  /** Of the last turn. */
  readonly end: TurnEndReason
  readonly usage: TokenUsage
  readonly changedFiles: readonly string[]
  /** Something was to be asked and nobody could answer. */
  readonly wasDenied: boolean
  /** What a signal says to exit with. */
  readonly stopCode?: number | undefined
  /** What failed beside the turn: the log could not be written, the answer does not fit. */
  readonly failure?: { readonly code: string; readonly message: string } | undefined
}

/** The last line of `--json`. */
export interface RunResult {
  readonly status: TurnEndReason['kind']
  readonly sessionId: string | null
  readonly usage: TokenUsage
  readonly cost: number | null
  readonly changedFiles: readonly string[]
  readonly error?: { readonly code: string; readonly message: string }
}

const credentialCodes = new Set(['AUTH', 'MISSING_CREDENTIAL', 'INVALID_CREDENTIAL'])
/** Failures of ours that only pass through the model's place in the turn. */
const ownCodes = new Set(['UNKNOWN', 'NO_ADAPTER', 'INVALID_ADAPTER', 'INVALID_PREPARED_CALL'])

/** A signal wins over everything, then what failed, then a refusal, then an end that is no completion. */
export function exitCodeOf({ end, stopCode, failure, wasDenied }: RunFacts): number {
  if (stopCode !== undefined) return stopCode
  if (failure !== undefined) return exitCode.failed
  if (end.kind === 'error') {
    const { code } = end.error
    if (credentialCodes.has(code)) return exitCode.noCredential
    return ownCodes.has(code) ? exitCode.failed : exitCode.provider
  }
  // A person cancels; whatever else stopped the turn did so because something failed.
  if (end.kind === 'aborted') return end.reason.kind === 'user' ? exitCode.cancelled : exitCode.failed
  if (wasDenied) return exitCode.denied
  return end.kind === 'completed' ? exitCode.ok : exitCode.failed
}

export function resultOf(facts: RunFacts): RunResult {
  const { sessionId, end, usage, changedFiles, failure } = facts
  const error = failure ?? errorOf(end)
  return {
    status: end.kind,
    sessionId,
    usage,
    cost: null,
    changedFiles,
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  }
}

/** What stopped the turn, if neither the model nor a person did. */
function errorOf(end: TurnEndReason): { readonly code: string; readonly message: string } | undefined {
  if (end.kind === 'error') return end.error
  const isStopped = end.kind === 'aborted' && end.reason.kind === 'hook'
  return isStopped ? { code: 'STOPPED', message: end.reason.reason } : undefined
}

/** The result of a run in which no turn began. */
export function failedResult(error: { readonly code: string; readonly message: string }): RunResult {
  const usage = { inputTokens: 0, outputTokens: 0 }
  const { code, message } = error
  return { status: 'error', sessionId: null, usage, cost: null, changedFiles: [], error: { code, message } }
}

const deniedText =
  'something was denied because nobody could be asked; --yes allows it, or, beyond the sandbox, a rule: dsh permission --help'

/** Why the turn ended as it did, where a person should know. */
export function endLine({ end, wasDenied }: RunFacts): string | undefined {
  if (end.kind === 'completed') return wasDenied ? deniedText : undefined
  return end.kind === 'error' ? undefined : endOf(end)
}

const shownFiles = 5

/** The last line of a run for a person, which tells how to go on. */
export function summaryLine(facts: RunFacts, command: string): string {
  const { sessionId, usage, changedFiles } = facts
  const cached = usage.cacheReadTokens ?? 0
  const sent = usage.inputTokens + cached + (usage.cacheWriteTokens ?? 0)
  const tokens = `${grouped(sent)} tokens in${cached > 0 ? ` (${grouped(cached)} cached)` : ''}, ${grouped(usage.outputTokens)} out`
  const named = changedFiles.slice(0, shownFiles).map(oneLine).join(', ')
  const more = changedFiles.length > shownFiles ? ` and ${changedFiles.length - shownFiles} more` : ''
  const changed = changedFiles.length === 0 ? 'no files changed' : `changed ${named}${more}`
  return `session ${inert(sessionId)} · ${tokens} · ${changed} · go on: ${command} run -r ${sessionId} "…"`
}
