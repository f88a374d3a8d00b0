import {
  bytesOf,
  compareRequests,
  piecesOf,
  placeOf,
  rebuildRequest,
  requestsOf,
} from '@dsh/harness/plugins/time-travel'
import type { LoggedRequest } from '@dsh/harness/plugins/time-travel'
import type { Session } from '@dsh/harness/session'
import { CliError, usageError } from '../../errors.ts'
import { requestOf } from '../../time/places.ts'
import { comparisonLines, requestLines } from '../../time/request-text.ts'
import type { ShownRequest } from '../../time/request-text.ts'
import { viewSession } from '../../time/view.ts'
import { wireBody } from '../../time/wire-body.ts'
import type { CommandBody } from '../../command.ts'
import { withReader } from './reader.ts'

export const request: CommandBody = ({ words: [word = '', step = ''], values }, io) =>
  withReader(io, async ({ sessions }) => {
    const session = await viewSession(sessions, word, io)
    const { id } = session
    const { diff, json, raw } = values
    if (json === true && raw === true)
      throw usageError(
        'OPTION_CONFLICT',
        '--json and --raw are two forms of one thing, give one of them',
        `dsh session request ${id} ${step} --raw`,
      )
    if (raw === true && diff !== undefined)
      throw usageError(
        'OPTION_CONFLICT',
        '--raw shows one request, --diff two',
        `dsh session request ${id} ${step} --diff ${String(diff)}`,
      )
    const requests = requestsOf(session)
    const place = { session, requests, command: `dsh session request ${id}` }
    const shown = show(requestOf(step, place), session)
    if (raw === true) {
      const body = await wireBody(shown.rebuilt.request, {
        session,
        io,
        fix: `dsh session request ${id} ${step} --json`,
      })
      io.out.line(Buffer.from(body).toString())
      return 0
    }
    if (typeof diff !== 'string') {
      if (json === true) io.out.line(JSON.stringify(requestJson(shown)))
      else for (const line of requestLines(shown)) io.out.line(line)
      return 0
    }
    const before = show(requestOf(diff, place), session)
    const found = compareRequests(before.rebuilt, shown.rebuilt, session)
    if (json === true) {
      const [from, to] = [before, shown].map(each => factsOf(each))
      io.out.line(JSON.stringify({ before: from, after: to, ...found }))
    } else for (const line of comparisonLines(before, shown, found)) io.out.line(line)
    return 0
  })

function show(logged: LoggedRequest, session: Session): ShownRequest {
  const rebuilt = rebuildRequest(session, logged.seq)
  if (rebuilt === undefined) {
    const what = `request ${placeOf(logged)} of session ${session.id} cannot be rebuilt: no event says what to ask`
    throw new CliError('NO_REQUEST_HEADER', what)
  }
  const { outcome } = logged
  const answer = outcome.kind === 'answered' ? session.at(outcome.seq) : undefined
  const cached = answer?.type === 'assistant/message' ? answer.data.usage?.cacheReadTokens : undefined
  return { logged, rebuilt, cached }
}

function factsOf({ logged, rebuilt, cached }: ShownRequest): object {
  const { provider, model } = rebuilt.header.config
  const bytes = bytesOf(piecesOf(rebuilt.request))
  return { ...logged, provider, model, bytes, ...(cached === undefined ? {} : { cacheReadTokens: cached }) }
}

function requestJson(shown: ShownRequest): object {
  const { header, messages, seqs } = shown.rebuilt
  const { config, system, tools } = header
  const body = {
    config,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
    messages,
  }
  return { ...factsOf(shown), request: body, messageSeqs: seqs }
}
