import type { Io } from './io.ts'

export interface Option {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** What stands for the value in the help. */
  readonly value?: string
  readonly about: string
}

/** What was typed, sorted out: only options that the command knows, each of its type. */
export interface Arguments {
  readonly values: Readonly<Record<string, string | boolean | undefined>>
  readonly words: readonly string[]
}

/** One word after `dsh`, or an action of a group. What it is and takes is here at start; what it does is loaded when asked for. */
export interface Command {
  readonly name: string
  readonly usage: string
  readonly about: string
  readonly options: Readonly<Record<string, Option>>
  /** The words it takes, in order; one in brackets may be left out. Absent = any number, which it reads itself. */
  readonly words?: readonly string[]
  /** What follows the first word is all words, options too: another command's. */
  readonly takesCommand?: boolean
  /** Lines below the options in its help. */
  readonly notes?: readonly string[]
  load(): Promise<CommandBody>
}

/** A word after `dsh` with further words of its own; the name of an action is both, "session ls". */
export interface CommandGroup {
  readonly name: string
  readonly about: string
  readonly actions: readonly Command[]
  readonly notes?: readonly string[]
}

/** Does the command and resolves with the exit code. Errors for the person are thrown as `CliError`. */
export type CommandBody = (args: Arguments, io: Io) => Promise<number>
