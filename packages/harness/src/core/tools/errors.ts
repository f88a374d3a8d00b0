import { HarnessError } from '../../kernel/index.ts'
import { cutText } from './text.ts'

export type ToolErrorCode =
  /** No such tool is visible where the call was made. */
  | 'UNKNOWN_TOOL'
  | 'INVALID_ARGS'
  /** A tool gave something other than it had declared. */
  | 'INVALID_TOOL_OUTPUT'
  /** Cancelled after the body had started. */
  | 'ABORTED'
  | 'ABORTED_BEFORE_DISPATCH'
  | 'TOOL_NOT_STARTED'
  | 'TOOL_OUTCOME_UNKNOWN'
  /** A schema uses what is not enforced here. */
  | 'INVALID_SCHEMA'
  /** A tool, restriction or presentation that cannot be registered. */
  | 'INVALID_TOOL'

export class ToolError extends HarnessError<ToolErrorCode> {
  static {
    this.prototype.name = 'ToolError'
  }
}

export class ToolNotFoundError extends ToolError {
  static {
    this.prototype.name = 'ToolNotFoundError'
  }

  constructor(message: string) {
    super('UNKNOWN_TOOL', message)
  }
}

/** Problems past these are counted, not named. */
const shownProblems = 20
const longestProblem = 400

export class ToolArgsError extends ToolError {
  static {
    this.prototype.name = 'ToolArgsError'
  }

  /** One per problem, its path first. */
  readonly violations: readonly string[]

  constructor(violations: readonly string[]) {
    super('INVALID_ARGS', `invalid arguments: ${joinProblems(violations)}`)
    this.violations = violations
  }
}

export class ToolOutputError extends ToolError {
  static {
    this.prototype.name = 'ToolOutputError'
  }

  constructor(tool: string, problem: string, options?: ErrorOptions) {
    super('INVALID_TOOL_OUTPUT', `tool "${tool}" gave an invalid result: ${problem}`, options)
  }
}

/** Names every place of a schema that is outside of what is enforced. */
export class JsonSchemaError extends ToolError {
  static {
    this.prototype.name = 'JsonSchemaError'
  }

  /** One per problem, its path first. */
  readonly problems: readonly string[]

  constructor(name: string, problems: readonly string[]) {
    super('INVALID_SCHEMA', `${name} cannot be used: ${problems.join('; ')}`)
    this.problems = problems
  }
}

export function joinProblems(problems: readonly string[]): string {
  const shown = problems
    .filter((_, index) => index < shownProblems)
    .map(text => cutText(text, longestProblem))
  const rest = problems.length - shown.length
  return rest > 0 ? `${shown.join('; ')}; and ${rest} more` : shown.join('; ')
}
