import type { CallId, SessionId } from '@dsh/protocol'

/** How a path differs from the point before. */
export type ChangeStatus = 'added' | 'modified' | 'deleted'

export interface ChangedPath {
  /** Relative to the workspace, `/` between folders. A name that is not UTF-8 is written as git quotes it. */
  readonly path: string
  readonly status: ChangeStatus
}

/** What a restore point does not hold, and why. */
export interface SkippedPaths {
  /** How many entries the ignore rules of the workspace leave out; a folder counts once. */
  readonly ignored?: number
  /** Files above the size limit. */
  readonly tooLarge?: readonly string[]
  readonly unreadable?: readonly string[]
  /** Sockets, devices, other file systems, and names that git keeps for itself. */
  readonly special?: readonly string[]
  /** Paths of these lists that are not named here; the point itself names all. */
  readonly more?: number
}

export type RewindScope = 'conversation' | 'files' | 'both'

export type FileAction = 'restore' | 'recreate' | 'delete'

/** Why a path stays as it is. */
export type KeptReason =
  /** The user, or another program, changed it: nothing of the session did. */
  | 'changed-by-user'
  /** One of the two states does not hold it: ignored, too large or unreadable at that time. */
  | 'not-in-point'
  /** Something that may not be touched is in the way: a folder that is not empty, a link, an unreadable place. */
  | 'in-the-way'
  /** The attempt to write it failed. */
  | 'failed'

/** A place in a log: the last event that counts; -1 before the first. */
export interface LogPlace {
  readonly session: SessionId
  readonly seq: number
}

declare module '@dsh/protocol/events' {
  interface SessionEventMap {
    /** The files of the workspace as they were right after event `after`. */
    'restore/point': {
      readonly turn: number
      /** Absent on the point of a turn's beginning, and on the user's. */
      readonly step?: number
      /** The first call of the step that may have changed files; with `by`, the call it was taken for. */
      readonly callId?: CallId
      /** What is different was changed within the turn, while no call of the session ran. */
      readonly by?: 'user'
      readonly after: number
      /** Names the state in the private repository of the workspace. */
      readonly commit: string
      /** The session's point before; the numbers are against it. Absent on the first. */
      readonly parent?: string
      readonly files: number
      readonly insertions: number
      readonly deletions: number
      /** The first of the changed paths. */
      readonly changed?: readonly ChangedPath[]
      readonly skipped?: SkippedPaths
    }
    /** Files, or the conversation, were taken back to an earlier event; in the session that goes on. */
    'rewind/applied': {
      readonly scope: RewindScope
      readonly from: LogPlace
      readonly to: LogPlace
      /** The files as they are now. Absent where only the conversation was taken back. */
      readonly commit?: string
      /** The files as they were before. */
      readonly backup?: string
      /** The first of the paths that were written. */
      readonly files: readonly { readonly path: string; readonly action: FileAction }[]
      /** How many were written in all. */
      readonly written: number
      readonly kept: readonly { readonly path: string; readonly reason: KeptReason }[]
      /** It took a rewind back. */
      readonly undo?: true
    }
  }
}
