import type { StreamChunk } from '@dsh/protocol'
import { isLoopRequest } from '../llm/index.ts'
import { scopeTarget } from '../scope/index.ts'
import { canonicalHeader, SurfaceManager } from '../session/index.ts'
import type { Session } from '../session/index.ts'
import type { Companion } from './companion.ts'
import { requestMismatch } from './request-theorem.ts'
import { afterChunk, chunkProblem, endProblem, streamStart } from './stream-grammar.ts'

type Fail = (message: string) => void

/** What is dispatched about an agent, or a call of one, goes to the scope of that agent and to no other. */
const carriers: Companion = {
  install(ctx, fail) {
    ctx.on('internal/dispatch', (_mode, name, args, carrier) => {
      const subject = subjectOf(name, args)
      if (subject === undefined || carrier === scopeTarget(subject.scope)) return
      fail(`"${name}" is about one scope and was dispatched for another`)
    })
  },
}

/** The scope that an event is about; undefined where its arguments do not tell. */
function subjectOf(
  name: string,
  args: readonly unknown[],
): { readonly scope: object | undefined } | undefined {
  const [first, second] = args as readonly Readonly<Record<string, object | undefined>>[]
  if (name === 'system-prompt/assemble') return { scope: second?.['scope'] }
  const isOfAgent = name.startsWith('agent/') || (name.startsWith('tools/') && first !== undefined)
  return isOfAgent ? { scope: first?.['agent'] } : undefined
}

/** A loop sends what its log says, byte for byte, and nothing in it can change any more. */
const requests: Companion = {
  inject: ['sessions'],
  install(ctx, fail) {
    const histories = new WeakMap<Session, History>()
    ctx.on(
      'llm/stream',
      (options, next) => {
        const { sessionId } = options
        const session = sessionId === undefined ? undefined : ctx.sessions.get(sessionId)
        if (session === undefined || !isLoopRequest(options)) return next()
        const history = histories.get(session) ?? new History(session)
        histories.set(session, history)
        const problem = requestMismatch(options, history.parts())
        if (problem !== undefined) fail(`request of session "${session.id}": ${problem}`)
        return next()
      },
      { global: true },
    )
  },
}

/** Follows a log by itself, so that what the session says of itself is not what it is checked against. */
class History {
  readonly #session: Session
  readonly #surface = new SurfaceManager()
  #next = 0

  constructor(session: Session) {
    this.#session = session
  }

  parts(): Parameters<typeof requestMismatch>[1] {
    for (const event of this.#session.since(this.#next)) this.#surface.append(event)
    this.#next = this.#session.length
    const last = this.#session.last('request/header')
    return {
      header: last === undefined ? undefined : canonicalHeader(last.data.header),
      messages: this.#surface.messages,
    }
  }
}

/** An adapter's stream keeps the grammar of chunks. */
const streams: Companion = {
  install(ctx, fail) {
    ctx.on('llm/stream', (options, next) => checked(next(), `${options.provider}/${options.model}`, fail), {
      global: true,
    })
  },
}

async function* checked(
  stream: AsyncIterable<StreamChunk>,
  route: string,
  fail: Fail,
): AsyncGenerator<StreamChunk, void> {
  let state = streamStart
  const tell = (problem: string | undefined): void => {
    if (problem !== undefined) fail(`stream of ${route}: ${problem}`)
  }
  for await (const chunk of stream) {
    tell(chunkProblem(state, chunk))
    state = afterChunk(state, chunk)
    yield chunk
  }
  tell(endProblem(state))
}

/** Those that watch any harness, by name. */
export const companions: Readonly<Record<string, Companion>> = { carriers, requests, streams }
