import type { SessionId } from '@dsh/protocol'
import type { Emit } from '../../kernel/index.ts'

export type HookNoticeCode =
  /** Part of a hook file is left out. */
  | 'HOOK_NOT_LOADED'
  /** The project brings hooks that nobody trusts as they are. */
  | 'HOOKS_NOT_TRUSTED'
  /** A hook file of a session became another than the one that was trusted. */
  | 'HOOKS_CHANGED'
  | 'HOOK_FAILED'
  /** What a hook wants the person to know. */
  | 'HOOK_MESSAGE'
  /** A hook blocked, changed or stopped something. */
  | 'HOOK_DECIDED'

/** Something about hooks that the person should know. */
export interface HookNotice {
  readonly sessionId: SessionId
  readonly code: HookNoticeCode
  readonly message: string
}

declare module '../../kernel/index.ts' {
  interface Events {
    'hooks/notice': Emit<[notice: HookNotice]>
  }
}
