import type { CallId, SessionId } from '@dsh/protocol'
import type { Emit } from '../../kernel/index.ts'
import type { Session } from '../../core/session/index.ts'
import type { ChangedPath, FileAction, KeptReason, LogPlace, RewindScope, SkippedPaths } from './events.ts'

/** A state of a workspace's files that can be read and gone back to. */
export interface RestorePoint {
  /** The event that tells of it. */
  readonly seq: number
  /** `user`: taken within a turn, of what somebody else changed. */
  readonly kind: 'turn' | 'step' | 'user' | 'rewind'
  readonly turn: number
  readonly step?: number
  /** The files are as they were right after this event. */
  readonly after: number
  readonly commit: string
  readonly parent?: string
  readonly files: number
  readonly insertions: number
  readonly deletions: number
  readonly changed: readonly ChangedPath[]
  readonly skipped?: SkippedPaths
  /** Of a rewind: paths that it left as the user had them. */
  readonly kept?: readonly string[]
  /** The folder of the session. */
  readonly workspace: string
}

/** Something a session can be taken back to: what it names is the first that is undone. */
export interface RewindRow {
  /** The prompt, or the first call of a step that changed files. */
  readonly seq: number
  readonly kind: 'user' | 'tool' | 'rewind'
  readonly turn: number
  /** The prompt, the tool's name, or empty. */
  readonly text: string
  /** Of a call: its raw arguments. */
  readonly arguments?: string
  /** What it changed: of a prompt, its whole turn. */
  readonly files: number
  readonly insertions: number
  readonly deletions: number
  /** The state of the files; absent on a prompt whose turn has none. */
  readonly point?: RestorePoint
}

export interface PointFile {
  readonly path: string
  readonly kind: 'file' | 'link'
  /** Permission bits; of a link 0o777. */
  readonly mode: number
  /** In bytes. */
  readonly size: number
  readonly oid: string
}

export type PreviewStatus = FileAction | 'conflict' | 'unknown'

export interface PreviewFile {
  readonly path: string
  /** `conflict`: changed by the user, kept. `unknown`: one of the states does not hold it, kept. */
  readonly status: PreviewStatus
  readonly reason?: KeptReason
  /** Lines that the rewind adds and takes away; absent for binary files. */
  readonly insertions?: number
  readonly deletions?: number
}

export interface RewindOptions {
  /** Default `both`; of an undo what the rewind took back. */
  readonly scope?: RewindScope
  /** Of the new session; a fresh one where absent. */
  readonly childId?: SessionId
  /** Paths to write although the user changed them. */
  readonly overwrite?: readonly string[]
  readonly signal?: AbortSignal
}

export interface RewindPreview {
  readonly scope: RewindScope
  /** Where the conversation would go on: the last event of which session. */
  readonly to: LogPlace
  /** Absent where the scope leaves the files alone. */
  readonly point?: RestorePoint
  readonly files: readonly PreviewFile[]
}

export interface RewindResult {
  /** The session to go on with. */
  readonly session: SessionId
  readonly scope: RewindScope
  readonly files: readonly { readonly path: string; readonly action: FileAction }[]
  readonly kept: readonly { readonly path: string; readonly reason: KeptReason }[]
  /** Names the state before, in the private repository. */
  readonly backup?: string
}

/** The files right before a call, and what is missing of them. Paths are relative to the workspace. */
export interface KeptState {
  /** Its own event names the state: a rewind of the files alone to it gives them back. */
  readonly point: RestorePoint
  /** Files above the size limit, and what could not be read. */
  readonly missing: readonly string[]
  /** What ignore rules leave out and is not small. */
  readonly ignored: readonly string[]
}

/** Restore points of the sessions' workspaces, and the way back to them. */
export interface Rewind {
  /** What a session can be taken back to, oldest first. */
  list(session: Session): readonly RewindRow[]
  /** The files as they were right after event `seq`; undefined where no point is that old. */
  pointAt(session: Session, seq: number): RestorePoint | undefined
  /** In byte order of the paths. Rejects with REWIND_POINT_GONE where the repository no longer has the point. */
  filesAt(point: RestorePoint): Promise<readonly PointFile[]>
  /**
   * Keeps the files as they are now, small ignored ones too, before `callId` may destroy some. Rejects with REWIND_OFF
   * where nothing can be kept; the message says why.
   */
  keep(session: Session, callId: CallId): Promise<KeptState>
  /** The bytes of a file, the target of a link; undefined where the point has no such path. */
  read(point: RestorePoint, path: string): Promise<Uint8Array | undefined>
  /** What differs, as a unified patch; binary files are named only. Both points are of one workspace. */
  diff(from: RestorePoint, to: RestorePoint): Promise<string>
  /**
   * Completes a rewind of the session's folder that was broken off. True where there was one: what it logged is in the
   * stored session then. Rejects with REWIND_BUSY where it still runs.
   */
  recover(session: Session): Promise<boolean>
  /**
   * What `apply` would do now. Changes nothing in the workspace or a log. Rejects with REWIND_NO_POINT where files are
   * asked for and none are kept from then.
   */
  preview(session: Session, to: RewindTarget, options?: RewindOptions): Promise<RewindPreview>
  /**
   * Takes files, conversation or both back to right before event `to`, or takes the last rewind back. The conversation
   * goes on in a new session; the given one stays as it is. Rejects with REWIND_OPEN_TURN while a turn runs here, and as
   * the store does where another program has the session.
   */
  apply(session: Session, to: RewindTarget, options?: RewindOptions): Promise<RewindResult>
  /**
   * Stores a new session with the events up to and including `after`; a turn that is open there is closed in it. Files
   * are left alone. Its points stay, whatever becomes of the session it comes from.
   */
  fork(session: Session, options?: ForkAtOptions): Promise<SessionId>
}

export interface ForkAtOptions {
  /** Default: the last event. */
  readonly after?: number
  readonly childId?: SessionId
}

/** The first event that is taken back, or the last rewind. */
export type RewindTarget = number | 'undo'

export interface RewindNotice {
  readonly code:
    /** No restore points are taken in this workspace, by this program. */
    | 'REWIND_OFF'
    /** One point could not be taken. */
    | 'POINT_FAILED'
    /** A rewind was broken off; it has been completed now, or is named. */
    | 'REWIND_BROKEN_OFF'
  readonly message: string
  readonly workspace: string
}

declare module '../../kernel/index.ts' {
  interface Services {
    rewind: Rewind
  }

  interface Events {
    'rewind/notice': Emit<[notice: RewindNotice]>
  }
}
