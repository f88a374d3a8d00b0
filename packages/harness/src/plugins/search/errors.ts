import { HarnessError } from '../../kernel/index.ts'

export type SearchErrorCode =
  | 'SEARCH_INVALID_PATTERN'
  /** The search program is missing, failed, or was killed. */
  | 'SEARCH_FAILED'
  | 'SEARCH_ABORTED'

/** What a search fails with; never thrown for a search that finds nothing. */
export class SearchError extends HarnessError<SearchErrorCode> {
  static {
    this.prototype.name = 'SearchError'
  }
}
