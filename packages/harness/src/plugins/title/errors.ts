import { HarnessError } from '../../kernel/index.ts'

export type TitleErrorCode =
  /** Nothing is left of a title, or of what a provider gave. */
  | 'INVALID_TITLE'
  /** Another provider is there already. */
  | 'DUPLICATE_PROVIDER'
  | 'INVALID_PROVIDER'
  /** Something newer gives the session its title. */
  | 'TITLE_SUPERSEDED'
  /** The session is not live here, or cannot be written. */
  | 'SESSION_NOT_WRITABLE'
  /** The messages do not fit into the request for a title. */
  | 'TITLE_INPUT_TOO_LARGE'
  /** The model gave no title. */
  | 'TITLE_REFUSED'

export class TitleError extends HarnessError<TitleErrorCode> {
  static {
    this.prototype.name = 'TitleError'
  }
}
