import { HarnessError } from '../../kernel/index.ts'

export type TaskErrorCode =
  /** The owner has no such task. */
  | 'UNKNOWN_TASK'
  /** As many run as one owner may have. */
  | 'TOO_MANY_TASKS'
  /** A task that nobody could name. */
  | 'INVALID_TASK'
  /** The owner has ended, or the service. */
  | 'TASKS_CLOSED'
  /** No call of this id runs that could go on in the background. */
  | 'NOT_MOVABLE'

export class TaskError extends HarnessError<TaskErrorCode> {
  static {
    this.prototype.name = 'TaskError'
  }
}
