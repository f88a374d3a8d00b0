import { HarnessError } from '../../kernel/index.ts'

/** A rule of the harness was broken: a mistake in a program, never in what a person or a model did. */
export class InvariantError extends HarnessError<'INVARIANT'> {
  static {
    this.prototype.name = 'InvariantError'
  }

  readonly check: string

  constructor(check: string, message: string) {
    super('INVARIANT', `${check}: ${message}`)
    this.check = check
  }
}
