import type { SessionEvent } from '@dsh/protocol'
import type { Emit, Parallel, Veto } from '../../kernel/index.ts'
import type { Session } from './log.ts'
import type { SessionPersistence } from './persistence.ts'
import type { SessionStore } from './store.ts'

declare module '../../kernel/index.ts' {
  interface Services {
    sessions: SessionStore
    sessionPersistence: SessionPersistence
  }

  interface Events {
    'session/created': Veto<[session: Session]>
    /** After the commit, in the order of seq. */
    'session/event': Emit<[session: Session, event: SessionEvent]>
    /** Make everything that was appended durable; started only by `ctx.sessions.flush`. */
    'session/flush': Parallel<[session: Session]>
    'session/disposed': Emit<[session: Session]>
  }
}
