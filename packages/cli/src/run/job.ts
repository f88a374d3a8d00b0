import type { Context } from '@dsh/harness/kernel'
import type { AnswerSchema } from './answer-schema.ts'
import type { ModelRoute } from './model.ts'
import type { RunOptions } from './options.ts'
import type { Stop } from './signals.ts'
import type { Io } from '../io.ts'

/** All that one run starts from. */
export interface Job {
  readonly ctx: Context
  readonly prompt: string
  readonly schema: AnswerSchema | undefined
  /** The model asked for in an earlier run. */
  readonly last: ModelRoute | undefined
  readonly options: RunOptions
  readonly stop: Stop
  readonly io: Io
  /** The command that says everything again. */
  readonly again: string
}

/** What came of the turns of a run. */
export interface Talk {
  /** What goes to standard output. */
  readonly answer: string
  readonly failure?: { readonly code: string; readonly message: string }
}
