import { HarnessError } from '../../kernel/index.ts'

export type PromptErrorCode =
  /** Two complete sections count at once. */
  | 'COMPLETE_CONFLICT'
  /** The configured order of tools is not usable, or names a tool that does not exist. */
  | 'INVALID_TOOL_ORDER'
  | 'INVALID_VARIABLE'
  /** A section, context, variable or tool provider failed. */
  | 'PROMPT_FAILED'

export class PromptError extends HarnessError<PromptErrorCode> {
  static {
    this.prototype.name = 'PromptError'
  }
}
