import type { Context, Inject } from '../../kernel/index.ts'

/** Watches something that is no log. */
export interface Companion {
  readonly inject?: Inject
  /** `fail` throws an InvariantError where the mode is 'refuse', and else reports it and returns. */
  install(ctx: Context, fail: (message: string) => void): void
}
