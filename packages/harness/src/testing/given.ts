import assert from 'node:assert/strict'
import { SessionId } from '@dsh/protocol'
import type { SessionEvent, SessionEventMap, SessionEventType, SurfaceIntent } from '@dsh/protocol'
import { isSurfaceEvent, Session } from '../core/session/index.ts'

export * from './facts.ts'

/** An event without what the log fills in; a surface event goes to the end unless it says otherwise. */
export type Draft = {
  [Type in SessionEventType]: readonly [
    type: Type,
    data: SessionEventMap[Type],
    intent?: Partial<SurfaceIntent>,
  ]
}[SessionEventType]

const firstTime = 1_700_000_000_000

/** The events of a log with these drafts, a millisecond apart, unchecked: it may be a wrong one. */
export function logOf(...drafts: readonly Draft[]): SessionEvent[] {
  return drafts.map(([type, data, intent], seq) => {
    const event = { type, seq, time: firstTime + seq, data } as SessionEvent
    return isSurfaceEvent(event) ? { ...event, surfaceOp: 'append', ...intent } : { ...event, ...intent }
  }) as SessionEvent[]
}

export interface Outcome {
  readonly session: Session
  /** Asserts what was appended, in this order and nothing else. */
  appends(...expected: readonly Draft[]): void
  /** Asserts that it threw, as `assert.throws` does, and left no trace in the log. */
  throws(expected: assert.AssertPredicate): void
}

/** A session with these events, and what becomes of it: `given(…).when(session => …).appends(…)`. */
export function given(...drafts: readonly Draft[]): { when(act: (session: Session) => void): Outcome } {
  const session = Session.create(SessionId('given'))
  const append = session.append.bind(session) as (type: string, data: unknown, intent?: unknown) => void
  for (const { type, data, seq: _, time: __, ...intent } of logOf(...drafts)) append(type, data, intent)
  return {
    when(act) {
      const from = session.length
      let failure: { readonly error: unknown } | undefined
      try {
        act(session)
      } catch (error) {
        failure = { error }
      }
      return {
        session,
        appends(...expected) {
          if (failure !== undefined) throw failure.error
          assertAppended(session, from, expected)
        },
        throws(expected) {
          assert.throws(() => {
            if (failure !== undefined) throw failure.error
          }, expected)
          assertAppended(session, from, [])
        },
      }
    },
  }
}

function assertAppended(session: Session, from: number, expected: readonly Draft[]): void {
  const actual = [...session.since(from)].map(({ type, data, surfaceOp, sourceEventSeqs }, index) => {
    const intent = {
      ...(surfaceOp === undefined || expected[index]?.[2]?.surfaceOp === undefined ? {} : { surfaceOp }),
      ...(sourceEventSeqs === undefined ? {} : { sourceEventSeqs }),
    }
    return Object.keys(intent).length === 0 ? [type, data] : [type, data, intent]
  })
  assert.deepEqual(actual, expected)
}
