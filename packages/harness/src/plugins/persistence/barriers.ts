import type { SessionId, StreamChunk } from '@dsh/protocol'
import type { Context } from '../../kernel/index.ts'
import type {} from '../../core/agent/index.ts'
import type {} from '../../core/llm/index.ts'
import { pendingCalls, turnCursor } from '../../core/session/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { ToolDispatchExecution } from '../../core/tools/index.ts'
import type { Coordinator } from './coordinator.ts'

/**
 * Makes the log durable before anything that cannot be taken back: a model request, and the body of a top-level tool.
 * Where that fails, neither happens.
 */
export function raiseBarriers(ctx: Context, coordinator: Coordinator): void {
  const trackedSession = (id: SessionId | undefined): Session | undefined => {
    const session = id === undefined ? undefined : ctx.sessions.get(id)
    return session !== undefined && coordinator.isTracked(session) ? session : undefined
  }
  ctx.on(
    'llm/stream',
    (options, next) => {
      const session = trackedSession(options.sessionId)
      if (session === undefined) return next()
      return streamAfter(async () => {
        await ctx.sessions.flush(session)
        options.signal?.throwIfAborted()
      }, next)
    },
    { global: true },
  )
  ctx.on(
    'tools/execute',
    async (execution, next) => {
      const session = execution.parent === undefined ? trackedSession(execution.agent?.id) : undefined
      if (session === undefined) return next()
      markStart(session, execution)
      await ctx.sessions.flush(session)
      // The pipeline looks at the signal again before it runs the body.
      return next()
    },
    { global: true },
  )
}

/** Marks every running call of a session that was live before its store was: it may have begun unmarked. */
export function markRunningCalls(session: Session): void {
  for (const call of session.fold(pendingCalls)) {
    if (call.callSeq !== undefined && call.startSeq === undefined) markStart(session, call)
  }
}

/** After a crash this tells a call that never ran from one of which nobody knows. */
function markStart(session: Session, { callId }: Pick<ToolDispatchExecution, 'callId'>): void {
  const { openTurn: turn, openStep: step } = session.fold(turnCursor)
  if (turn === undefined || step === undefined) return
  const isAwaited = session
    .fold(pendingCalls)
    .some(call => call.callId === callId && call.callSeq !== undefined && call.startSeq === undefined)
  if (isAwaited) session.append('tool/start', { turn, step, callId }, { ignorable: true })
}

/** `open()`, begun once `ready` has resolved. */
function streamAfter(
  ready: () => Promise<void>,
  open: () => AsyncIterable<StreamChunk>,
): AsyncIterable<StreamChunk> {
  return {
    [Symbol.asyncIterator]() {
      let inner: AsyncIterator<StreamChunk> | undefined
      let isOver = false
      const start = async (): Promise<IteratorResult<StreamChunk>> => {
        await ready()
        if (isOver) return { done: true, value: undefined }
        inner = open()[Symbol.asyncIterator]()
        return inner.next()
      }
      return {
        next: () => (inner === undefined ? start() : inner.next()),
        async return() {
          isOver = true
          await inner?.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}
