import { CliError, exitCode, quoted } from '../errors.ts'
import { reportOf } from '../report-error.ts'
import type { Arguments } from '../command.ts'

/** The command that says all of it again. */
export function againCommand(prompt: string, { values }: Arguments, command: string): string {
  return [command, 'run', ...optionWords(values), quoted(prompt)].join(' ')
}

/**
 * An error before the first turn, with a command that holds the prompt, so that none is lost.
 *
 * Where a value was at fault the shell still has what was typed; only a prompt from standard input is repeated then.
 */
export function withPrompt(error: unknown, prompt: string, args: Arguments, command: string): CliError {
  const { code, message, exitCode: exit, fix } = reportOf(error)
  const isTyped = args.words.length > 0 && args.words[0] !== '-'
  const isUsage = exit === exitCode.usage
  const again = isUsage ? `${command} run … ${quoted(prompt)}` : againCommand(prompt, args, command)
  const lines = [fix, isUsage && isTyped ? undefined : again].filter(line => line !== undefined)
  return new CliError(code, message, { cause: error, exitCode: exit, fix: lines.join('\n') })
}

function optionWords(values: Arguments['values']): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    typeof value === 'string' ? [`--${name}`, quoted(value)] : [`--${name}`],
  )
}
