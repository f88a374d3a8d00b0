import { HarnessError } from '../../kernel/index.ts'

export type SubprocessErrorCode =
  /** No such program on the PATH, or the file cannot be run. */
  | 'PROGRAM_NOT_FOUND'
  | 'WORKDIR_NOT_FOUND'
  | 'SPAWN_FAILED'
  /** The service is disposed. */
  | 'SUBPROCESS_CLOSED'

export class SubprocessError extends HarnessError<SubprocessErrorCode> {
  static {
    this.prototype.name = 'SubprocessError'
  }
}
