import { HarnessError } from '../../kernel/index.ts'

/** Nothing here can enforce what a policy says. The message names the mode and what a person can do. */
export class SandboxError extends HarnessError<'SANDBOX_UNAVAILABLE'> {
  static {
    this.prototype.name = 'SandboxError'
  }
}
