import { HarnessError } from '../../kernel/index.ts'

export type FsErrorCode =
  | 'FS_NOT_FOUND'
  | 'FS_NOT_DIRECTORY'
  /** Binary, or not UTF-8. */
  | 'FS_NOT_TEXT'
  | 'FS_NOT_REGULAR_FILE'
  | 'FS_TOO_LARGE'
  /** The system refused. */
  | 'FS_PERMISSION_DENIED'
  /** Our policy refused. */
  | 'FS_SANDBOX_DENIED'
  | 'FS_IO_ERROR'
  /** The file is not the one that was seen. */
  | 'FS_STALE_VERSION'
  /** A file is there that nobody has read. */
  | 'FS_NOT_OBSERVED'
  | 'FS_AMBIGUOUS_EDIT'
  | 'FS_EDIT_NOT_FOUND'
  /** The file has fewer lines than were asked for. */
  | 'FS_OUT_OF_RANGE'
  | 'FS_ABORTED'

/** What a file operation fails with, whoever provides it. The message names the path as people know it. */
export class FsError extends HarnessError<FsErrorCode> {
  static {
    this.prototype.name = 'FsError'
  }
}
