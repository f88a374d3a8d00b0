import { HarnessError } from '@dsh/harness/kernel'

export const exitCode = {
  ok: 0,
  failed: 1,
  usage: 2,
  noCredential: 3,
  denied: 4,
  provider: 5,
  cancelled: 130,
} as const

interface CliErrorOptions extends ErrorOptions {
  readonly exitCode?: number
  readonly fix?: string
}

/** An error with the way out of it: `fix` is the command, or the one thing, that mends it. */
export class CliError extends HarnessError {
  readonly exitCode: number
  readonly fix: string | undefined

  constructor(code: string, message: string, options: CliErrorOptions = {}) {
    super(code, message, options)
    this.exitCode = options.exitCode ?? exitCode.failed
    this.fix = options.fix
  }
}

export function usageError(code: string, message: string, fix: string): CliError {
  return new CliError(code, message, { exitCode: exitCode.usage, fix })
}

/** `text` as one word of a shell command. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
