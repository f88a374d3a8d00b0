import { exitCodeOf, endLine, resultOf, summaryLine } from './outcome.ts'
import type { RunFacts } from './outcome.ts'
import { fixFor } from './fixes.ts'
import type { Tally } from '../tally.ts'
import type { Feed } from './feed.ts'
import type { ModelChoice } from './model.ts'
import type { Target } from './open.ts'
import type { Watch } from './watch.ts'
import type { Job, Talk } from './job.ts'
import { errorLines, reportOf } from '../report-error.ts'

interface Told {
  readonly watch: Watch
  readonly feed: Feed
  readonly target: Target
  readonly choice: ModelChoice
  readonly job: Job
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly cause?: unknown
}

/**
 * Tells how the run ended: the answer where all is well and stored, and then on standard error what to know and how to
 * go on. Gives the exit code.
 */
export async function tellOutcome(talk: Talk, told: Told): Promise<number> {
  const { watch, feed, target, job } = told
  const { io, options, stop } = job
  const { tally } = watch
  const failure = talk.failure ?? ownFailure(watch)
  const facts: RunFacts = {
    sessionId: target.id,
    end: tally.end ?? { kind: 'aborted', reason: { kind: 'user' } },
    usage: tally.usage,
    changedFiles: watch.changedFiles,
    wasDenied: watch.wasDenied,
    stopCode: stop.exitCode,
    failure,
  }
  if (failure === undefined) feed.answer(talk.answer)
  if (options.json) io.out.line(JSON.stringify(resultOf(facts)))
  await io.out.flush()
  const closed = io.out.failure
  const line = endLine(facts)
  if (line !== undefined) io.err.line(line)
  const problem = failure ?? turnFailure(facts) ?? (closed && outputFailure(closed))
  if (problem !== undefined) io.err.write(errorLines({ ...problem, exitCode: 1, ...fixOf(problem, told) }))
  if (!isUnstored(problem, tally)) io.err.line(summaryLine(facts, io.command))
  return closed === undefined ? exitCodeOf(facts) : Math.max(1, exitCodeOf(facts))
}

/** What failed in dsh itself: the turn's own record has only words for it. */
function ownFailure({ tally, failure }: Watch): Failure | undefined {
  if (failure === undefined) return undefined
  const { end } = tally
  if (end?.kind === 'error' && end.error.code !== 'UNKNOWN') return undefined
  if (end?.kind === 'aborted') return undefined
  const { code, message } = reportOf(failure)
  return { code, message: end?.kind === 'error' ? end.error.message : message, cause: failure }
}

function turnFailure({ end }: RunFacts): Failure | undefined {
  return end.kind === 'error' ? end.error : undefined
}

function outputFailure(error: Error): Failure {
  const { code = error.message } = error as NodeJS.ErrnoException
  return { code: 'OUTPUT_CLOSED', message: `standard output could not be written: ${code}` }
}

function fixOf(problem: Failure, { watch, target, choice, job }: Told): { readonly fix?: string } {
  const { io, again } = job
  const { command, home } = io
  const fix = fixFor(problem, { command, home, sessionId: target.id, keyEnv: choice.keyEnv })
  const isTooLong = problem.code === 'CONTEXT_WINDOW_EXCEEDED'
  const goOn = isUnstored(problem, watch.tally)
    ? again
    : isTooLong
      ? undefined
      : `${command} run -r ${target.id} "go on"`
  const lines = [fix, goOn].filter(text => text !== undefined)
  return lines.length === 0 ? {} : { fix: lines.join('\n') }
}

/** The prompt is not, or not surely, on the disk. */
function isUnstored(problem: Failure | undefined, { wasAnswered }: Tally): boolean {
  return problem !== undefined && unstoredCodes.has(problem.code) && !wasAnswered
}

const unstoredCodes = new Set(['STORE_FAILED', 'STORE_CLOSED', 'LOCK_LOST', 'STALE_APPEND', 'SESSION_HELD'])
