import { HarnessError } from '../../kernel/index.ts'

export type RewindErrorCode =
  /** No point is as old as the event, or none was ever taken. */
  | 'REWIND_NO_POINT'
  /** The private repository does not have the point any more. */
  | 'REWIND_POINT_GONE'
  /** Restore points cannot be taken or read here; the message says why. */
  | 'REWIND_OFF'
  /** The workspace folder of the session is not there. */
  | 'REWIND_FOLDER_GONE'
  /** A turn of the session runs. */
  | 'REWIND_OPEN_TURN'
  /** Another program is rewinding this workspace. */
  | 'REWIND_BUSY'
  | 'REWIND_NOTHING_TO_UNDO'
  | 'REWIND_BAD_SEQ'
  | 'GIT_FAILED'

export class RewindError extends HarnessError<RewindErrorCode> {
  static {
    this.prototype.name = 'RewindError'
  }
}
