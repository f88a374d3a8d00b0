import type { StreamChunk } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type {} from '../../core/agent/index.ts'
import type {} from '../../core/llm/index.ts'
import { turnCursor } from '../../core/session/index.ts'
import type { Keeper } from './keeper.ts'

/** How long a request that has not been answered yet has the machine for itself. */
const headStartMs = 50

/** Lets `keeper` take its points around requests and tools. */
export function hookUp(ctx: Context, keeper: Keeper): void {
  const global = { global: true }
  ctx.on(
    'llm/stream',
    ({ sessionId }, next) => {
      const session = sessionId === undefined ? undefined : ctx.sessions.get(sessionId)
      return session?.header.cwd === undefined ? next() : onceUnderWay(next, () => keeper.begin(session))
    },
    global,
  )
  // Before the log is flushed for the call: a point that was waited for is durable then too.
  ctx.on(
    'tools/execute',
    async (execution, next) => {
      const { agent, name, parent, rootCallId, signal } = execution
      if (agent?.session.header.cwd === undefined) return next()
      const call = {
        name,
        arguments: execution.arguments,
        agent,
        ...(parent === undefined ? {} : { parent }),
      }
      if (ctx.tools.executionMode(call) === 'parallel') return next()
      await untilAborted(keeper.beforeChange(agent.session), signal)
      // The pipeline looks at the signal again before it runs the body.
      if (signal.aborted) return next()
      const leave = keeper.enter(agent.session, rootCallId)
      try {
        return await next()
      } finally {
        leave()
      }
    },
    { global: true, prepend: true },
  )
  ctx.on('agent/turn-stopping', ({ agent }) => keeper.settle(agent.session), global)
  ctx.on(
    'session/flush',
    async session => {
      if (session.fold(turnCursor).openTurn === undefined) await keeper.rest(session)
    },
    global,
  )
  ctx.effect(() => () => keeper.close(), 'restore points')
}

/** Runs `then` when the first chunk of the stream is there, or it has been waited for a while. */
function onceUnderWay(open: () => AsyncIterable<StreamChunk>, then: () => void): AsyncIterable<StreamChunk> {
  return {
    [Symbol.asyncIterator]() {
      const inner = open()[Symbol.asyncIterator]()
      let isUnderWay = false
      let timer: NodeJS.Timeout | undefined
      const start = (): void => {
        clearTimeout(timer)
        if (!isUnderWay) then()
        isUnderWay = true
      }
      const first = async (): Promise<IteratorResult<StreamChunk>> => {
        timer = setTimeout(start, headStartMs)
        try {
          return await inner.next()
        } finally {
          start()
        }
      }
      return {
        next: () => (isUnderWay ? inner.next() : first()),
        async return() {
          clearTimeout(timer)
          await inner.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}

function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const onAbort = (): void => resolve()
  signal.addEventListener('abort', onAbort, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', onAbort))
}
