import { HarnessError } from '../../kernel/index.ts'

export type ExportErrorCode =
  | 'NOT_AN_EXPORT'
  /** Written by a later version. */
  | 'EXPORT_NEWER'
  | 'BAD_EXPORT_LINE'

export class ExportError extends HarnessError<ExportErrorCode> {
  static {
    this.prototype.name = 'ExportError'
  }
}
