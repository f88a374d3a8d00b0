import { checkProjection } from '../../core/llm/index.ts'
import type { ProjectionProblem } from '../../core/llm/index.ts'
import type { MediumProblem, Session } from '../../core/session/index.ts'
import { rebuildRequests, requestsOf } from '../time-travel/index.ts'
import type { LoggedRequest, RebuiltRequest } from '../time-travel/index.ts'

/** Makes every request of the log again, and looks at whether calls and results in it belong together. */
export function problemsOfRequests(session: Session): {
  /** Requests that could be made again. */
  readonly count: number
  readonly problems: readonly MediumProblem[]
} {
  const requests = requestsOf(session)
  const problems = [...problemsOfUnasked(session)]
  // What is in one history is in all that follow, and told once.
  const pairs = new Map<string, MediumProblem>()
  let count = 0
  let at = 0
  const seqs = requests.map(({ seq }) => seq)
  for (const rebuilt of rebuildRequests(session, seqs)) {
    const request = requests[at++] as LoggedRequest
    if (rebuilt === undefined) problems.push(unknown(request.seq, request))
    else {
      count += 1
      for (const problem of problemsOfPairs(rebuilt, request)) pairs.set(problem.message, problem)
    }
  }
  return { count, problems: [...problems, ...pairs.values()] }
}

/** Answers before the first header: nothing says what was asked. */
function problemsOfUnasked(session: Session): readonly MediumProblem[] {
  const problems: MediumProblem[] = []
  for (const { type, seq, data, surfaceOp } of session.since(0)) {
    if (type === 'request/header') break
    if (type === 'assistant/message' && surfaceOp === 'append') problems.push(unknown(seq, data))
  }
  return problems
}

function unknown(
  seq: number,
  { turn, step }: { readonly turn: number; readonly step: number },
): MediumProblem {
  const message = `the request of step ${turn}.${step} cannot be made again: no header comes before event ${seq}`
  return { code: 'REQUEST_UNKNOWN', message, seq }
}

function problemsOfPairs(
  { messages, seqs }: RebuiltRequest,
  request: LoggedRequest,
): readonly MediumProblem[] {
  const found = checkProjection(messages)
  // A model that gives two calls one id makes a history that no rule of ours tells apart.
  if (found.some(({ code }) => code === 'CALL_ID_TWICE')) return []
  return found.flatMap(problem => {
    const words = pairWords[problem.code]
    if (words === undefined) return []
    const seq = seqs[problem.index] ?? request.seq
    return [{ code: problem.code, message: `event ${seq}: call "${problem.callId ?? ''}" ${words}`, seq }]
  })
}

/** What an adapter mends, like broken arguments, is what the model said and no damage. */
const pairWords: Readonly<Partial<Record<ProjectionProblem['code'], string>>> = {
  UNANSWERED_CALL: 'has no result before the next request',
  ANSWERED_TWICE: 'has a second result',
  ANSWER_WITHOUT_CALL: 'has a result and was not made',
}
