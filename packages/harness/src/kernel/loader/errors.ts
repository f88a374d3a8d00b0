import { HarnessError } from '../errors.ts'

export type LoaderErrorCode =
  /** A composition file cannot be read or is not YAML. */
  | 'INVALID_COMPOSITION'
  /** A row has a wrong form. */
  | 'INVALID_ROW'
  /** A module cannot be found, takes too long, or holds no plugin. */
  | 'UNLOADABLE_PLUGIN'
  /** A file of a project that no person admitted. */
  | 'NOT_TRUSTED'
  /** A change was refused and undone; the cause tells why. */
  | 'CHANGE_REFUSED'
  /** A change was asked for from inside another one. */
  | 'NESTED_CHANGE'
  /** An installed plugin was changed on disk; it runs as it was. */
  | 'RESTART_NEEDED'
  /** A plugin took too long to end; changes go on without it. */
  | 'SLOW_DISPOSAL'

export class LoaderError extends HarnessError<LoaderErrorCode> {
  static {
    this.prototype.name = 'LoaderError'
  }
}
