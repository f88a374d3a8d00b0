import { HarnessError } from '../../kernel/index.ts'

export type ProjectionErrorCode =
  | 'INVALID_PROJECTION'
  /** Somebody registered the key with another version of its state. */
  | 'PROJECTION_CONFLICT'
  /** What a view gave is not JSON. */
  | 'INVALID_VIEW'

export class ProjectionError extends HarnessError<ProjectionErrorCode> {
  static {
    this.prototype.name = 'ProjectionError'
  }
}
