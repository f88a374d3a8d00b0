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

/** One word after `dsh`. What it is and takes is here at start; what it does is loaded when asked for. */
export interface Command {
  readonly name: string
  readonly usage: string
  readonly about: string
  readonly options: Readonly<Record<string, Option>>
  /** Lines below the options in its help. */
  readonly notes?: readonly string[]
  load(): Promise<CommandBody>
}

/** Does the command and resolves with the exit code. Errors for the person are thrown as `CliError`. */
export type CommandBody = (args: Arguments, io: Io) => Promise<number>
